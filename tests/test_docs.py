"""Test all Markdown of the repository: links, commands and options."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from re_bench.cli.main import app, load_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP = Path(__file__).resolve().parents[1]
_LISTED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"],
    cwd=TOP, check=True, capture_output=True, text=True,
).stdout  # fmt: skip
PAGES = sorted(TOP / name for name in _LISTED.split("\0") if name and (TOP / name).is_file())
_COMMAND = re.compile(r"re-bench (?!canary )([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^`\n|#]*)")


@cache
def tokens(page: Path) -> list[Any]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings in the repository's web view and on the site."""
    found: Counter[str] = Counter()
    every = set()
    for heading, text in zip(tokens(page), tokens(page)[1:], strict=False):
        if heading.type == "heading_open":
            words = "".join(child.content for child in text.children)
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            every.add(f"{slug}-{found[slug]}" if found[slug] else slug)
            found[slug] += 1
    return every


def links(page: Path) -> Iterator[str]:
    for token in tokens(page):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target and "://" not in target and not target.startswith("mailto:"):
                yield unquote(str(target))


def is_broken(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists() or not target.is_relative_to(TOP):
        return True
    return bool(anchor) and (target.suffix != ".md" or anchor not in anchors(target))


@pytest.mark.integration
def test_every_link_within_the_repository_leads_somewhere() -> None:
    assert len(PAGES) > 40
    assert [f"{page.relative_to(TOP)}: {link}" for page in PAGES for link in links(page) if is_broken(page, link)] == []


@pytest.mark.parametrize("link", ["nowhere.md", "start.md#nowhere", "#nowhere", "../../elsewhere.md", "site/conf.py#x"])
def test_a_broken_link_is_seen(link: str) -> None:
    assert is_broken(TOP / "docs" / "README.md", link)


def problem_of(words: re.Match[str]) -> str | None:
    """Return commands and options in a page's command line that do not exist."""
    load_commands()
    _names, apps, _rest = app.parse_commands([words[1], *([words[2]] if words[2] else [])])
    if len(apps) < 2:
        return f"no command {words[1]}"
    parameters = apps[-1].assemble_argument_collection() if apps[-1].default_command else []
    known = {"--help", *(name for parameter in parameters for name in parameter.names)}
    unknown = [option for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", words[3]) if option not in known]
    return f"re-bench {words[1]} has no {unknown[0]}" if unknown else None


def code(page: Path) -> Iterator[str]:
    """Yield the text of code spans and blocks of commands."""
    for token in tokens(page):
        if token.type == "fence" and token.info in ("bash", "console", "sh"):
            yield token.content.replace("\\\n", " ")
        yield from (child.content for child in token.children or [] if child.type == "code_inline")


@pytest.mark.integration
def test_every_command_and_option_in_a_page_exists() -> None:
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    found = [(page, match) for page in pages for text in code(page) for match in _COMMAND.finditer(text)]
    assert len(found) > 100
    assert [f"{page.relative_to(TOP)}: {problem}" for page, match in found if (problem := problem_of(match))] == []


def test_the_page_of_commands_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["re-bench"])  # cyclopts shows it in the usage of some commands
    page = runpy.run_path(str(TOP / "docs" / "site" / "commands.py"))["page"]()
    assert (TOP / "docs" / "commands.md").read_text(encoding="utf-8") == page, "run: python docs/site/commands.py"


def test_the_pictures_are_small() -> None:
    assert sum(path.stat().st_size for path in TOP.glob("docs/**/*") if path.suffix in {".svg", ".png"}) < 1_000_000
