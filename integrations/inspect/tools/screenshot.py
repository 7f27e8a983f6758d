"""Show a log in ``inspect view`` to chromium and save what it looks like: ``python screenshot.py LOG OUT.png``.

For a maintainer, who needs chromium, chromedriver and the package selenium. The browser reaches this machine alone.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[3] / "common" / "tests" / "support"))

from chromium import start

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, temporary_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE_S = 60.0
_LOCAL = ("http://127.0.0.1:", "data:")
_SCROLL = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  if (walker.currentNode.data.includes(arguments[0])) {
    walker.currentNode.parentElement.scrollIntoView({block: "center"});
    return true;
  }
}
return false;
"""


def screenshot(log: Path, image: Path, sample: str = "", text: str = "", size: tuple[int, int] = (1280, 800)) -> None:
    """Save what ``inspect view`` shows of a log.

    Args:
        log: a log of Inspect.
        image: a PNG that is written.
        sample: ``ID/EPOCH`` of the sample whose transcript is shown; the list of samples if empty.
        text: what the page is waited for to have, and scrolled to.
        size: width and height of the window, in pixels.

    Raises:
        UsageError: if the log or a program is missing.
        ReBenchError: if the page does not come up, or asks another machine for something.
    """
    chromium, chromedriver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or chromedriver is None:
        raise UsageError("no chromium or no chromedriver; run: apt-get install chromium chromium-driver")
    with _viewer(log) as address:
        browser = start(chromium, chromedriver)
        try:
            path = f"/samples/sample/{sample}/transcript" if sample else "/samples"
            browser.open(f"{address}/#/logs/{log.name}{path}", width=size[0], height=size[1])
            awaited = text or (sample.rpartition("/")[0] if sample else "Samples")
            _wait(lambda: bool(browser.run(_SCROLL, awaited)), f"page with {awaited!r}")
            time.sleep(2)  # what is drawn after the text: fonts, the colours of code
            browser.driver.save_screenshot(str(image))
            if strange := [url for url in browser.requests() if not url.startswith(_LOCAL)]:
                raise ReBenchError(f"the page asks other machines: {', '.join(strange)}")
        finally:
            browser.driver.quit()


@contextmanager
def _viewer(log: Path) -> Iterator[str]:
    """Run ``inspect view`` with a log alone, in a directory whose name says nothing of this machine; yield its address.

    Raises:
        UsageError: if there is no such log.
        ReBenchError: if it does not start.
    """
    if not log.is_file():
        raise UsageError(f"{log}: there is no such log")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with temporary_directory("inspect-") as place:
        logs = place / "logs"
        logs.mkdir()
        shutil.copy(log, logs)
        options = ["--log-dir", str(logs), "--host", "127.0.0.1", "--port", str(port)]
        command = [str(Path(sys.executable).with_name("inspect")), "view", "start", *options]
        with subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL) as process:
            try:
                _wait(lambda: _answers(port), "inspect view", process)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.kill()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _wait(there: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not there():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise ReBenchError(f"no {what} after {_PATIENCE_S:g} s")
        time.sleep(0.2)


def main() -> None:
    """Save what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", metavar="LOG", type=Path)
    parser.add_argument("image", metavar="OUT.png", type=Path)
    parser.add_argument("--sample", default="", metavar="ID/EPOCH", help="show its transcript, not the list of samples")
    parser.add_argument("--text", default="", help="scroll to the first place of it")
    parser.add_argument("--size", default="1280x800", metavar="WxH", help="of the window, in pixels")
    options = parser.parse_args()
    with cli_entry_point("screenshot"):
        width, _by, height = options.size.partition("x")
        screenshot(options.log, options.image, options.sample, options.text, (int(width), int(height)))


if __name__ == "__main__":
    main()
