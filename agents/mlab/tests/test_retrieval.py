"""Splitting, ranking and truncating texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlab_agent.actions.understand import retrieve, split_passages
from mlab_agent.truncate import truncate_middle

TEXTS = st.text(alphabet="ab \n\r\t_X1\u2028", max_size=4000) | st.text(alphabet="ab\n", min_size=3000, max_size=9000)


@pytest.mark.integration
@given(TEXTS)
def test_passages_cover_the_text(text: str) -> None:
    passages = split_passages(text)
    assert "".join(passage.text for passage in passages) == text
    lines = text.splitlines(keepends=True)
    for passage in passages:
        assert passage.text in "".join(lines[passage.first - 1 : passage.last])


@pytest.mark.integration
@given(TEXTS, st.text(max_size=20), st.integers(1, 5000))
def test_retrieved_passages_fit_and_are_in_order(text: str, query: str, chars: int) -> None:
    passages = split_passages(text)
    chosen = retrieve(passages, query, chars)
    assert set(chosen) <= set(passages)
    assert [passage.first for passage in chosen] == sorted(passage.first for passage in chosen)
    assert len(chosen) <= 1 or sum(len(passage.text) for passage in chosen) <= chars
    assert bool(chosen) == bool(passages)


def test_identifiers_are_split_and_words_stemmed() -> None:
    passages = split_passages("".join(f"filler{number} " * 20 + "\n" for number in range(300)))
    for text in ("learningRate = 3\n", "the learning_rates of it\n"):
        [wanted] = split_passages(text)
        found = retrieve([*passages[:5], wanted, *passages[5:]], "learned rate", 2_000)
        assert wanted in found
        assert len(found) < 4


@given(st.text(max_size=300), st.integers(2, 100))
def test_truncated_text_keeps_beginning_and_end(text: str, limit: int) -> None:
    cut = truncate_middle(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        assert cut.startswith(text[: limit // 2])
        assert cut.endswith(text[len(text) - (limit - limit // 2) :])
        assert f"{len(text) - limit} characters" in cut
