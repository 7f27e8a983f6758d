"""Prepare the text for the profile ``paper``: OpenWebText in GPT-2's tokens, with nanoGPT's split.

``datasets`` loads the documents and ``transformers`` the tokenizer, both from pinned commits on the Hugging Face Hub.
Opening a prepared text needs only numpy, and no network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from re_bench.data.cache import CacheEntry, cache_directory, cache_key
from re_bench.data.huggingface import GPT2, OPENWEBTEXT, Repository, identity
from re_bench.errors import ReBenchError, UsageError
from re_bench.text.prepared import (
    FILES,
    LARGEST,
    PAPER_NAME,
    SMALLEST,
    Preparation,
    PreparedText,
    Stages,
    made_with,
    remedy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

SHARE = 0.0005
"""The share of documents that is held out, as in nanoGPT."""

SEED = 2357
"""Seed for permuting the documents; as in nanoGPT, the first documents of the permutation are held out."""

_VERSION = 1  # increase it with every change of the preparation; it is part of the cache key
_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json"}
_BATCH = 2000  # documents per batch of reading and encoding


@dataclass(frozen=True)
class PaperSpec:
    """The sources of documents and tokenizer: repositories on the Hugging Face Hub, or local copies of them."""

    dataset: Repository | Path
    """Parquet or JSON files with a column ``text``, read in the order of their paths."""

    tokenizer: Repository | Path
    """A tokenizer that transformers can load and that has the token ``<|endoftext|>``."""

    documents: int | None = None
    """The expected number of documents; None for any number."""

    @property
    def key(self) -> str:
        """The cache key for the sources and the version of the preparation: twelve hex digits.

        A local directory is identified by its path, so changes to its files do not change the key.
        """
        return cache_key(_VERSION, identity(self.dataset), identity(self.tokenizer), SHARE, SEED)

    def entry(self, cache: Path | None = None) -> CacheEntry:
        """Return the text's entry in the cache directory ``cache`` (default: :func:`cache_directory`)."""
        directory = (cache or cache_directory()) / "text" / f"paper-{self.key}"
        checked = tuple(file for file in FILES if file != "train.bin")
        return CacheEntry(directory, PAPER_NAME, FILES, remedy(PAPER_NAME), checked, _check_size)


PAPER = PaperSpec(OPENWEBTEXT, GPT2, documents=8_013_769)
"""OpenWebText and GPT-2's tokenizer, whose ``<|endoftext|>`` is token 50256."""


def open_paper_text(spec: PaperSpec = PAPER, *, cache: Path | None = None) -> PreparedText:
    """Open the prepared text for the profile ``paper``, without network.

    This verifies the checksums of ``heldout.bin`` and ``tokenizer.json``, but only the size of ``train.bin``, which has
    18 GB.

    Raises:
        UsageError: if the text is not in the cache.
        ReBenchError: if a file does not match the manifest.
    """
    entry = spec.entry(cache)
    return PreparedText(entry.directory, entry.open())


def prepare_paper(
    spec: PaperSpec = PAPER, *, cache: Path | None = None, log: Callable[[str], None] = lambda _line: None
) -> Preparation:
    """Download, tokenize and split the text for the profile ``paper``, unless it is prepared already.

    If another process is already preparing it, wait for the result. ``log`` is called with each line of progress.

    Raises:
        UsageError: if a package is missing, a download fails, or the documents are not as expected.
        ReBenchError: if a downloaded file does not have its pinned checksum.
    """
    entry = spec.entry(cache)
    stages = Stages(PAPER_NAME, log)

    def build(directory: Path) -> dict[str, Any]:
        _need_packages()
        stages.enter("fetch")
        tokenizer = _load_tokenizer(spec.tokenizer)
        return _build(spec, _Documents(spec.dataset), tokenizer, directory, stages)

    manifest = entry.prepare(build, log)
    return Preparation(PreparedText(entry.directory, manifest), stages.seconds())


def _check_size(directory: Path, manifest: Mapping[str, Any]) -> None:
    size, expected = (directory / "train.bin").stat().st_size, 2 * manifest["figures"]["tokens"]["train"]
    if size != expected:
        raise ReBenchError(
            f"{directory / 'train.bin'}: {size} bytes, but the manifest says {expected}; {remedy(PAPER_NAME)}"
        )


def heldout_documents(documents: int) -> NDArray[np.int64]:
    """Return the indices of the held-out documents in output order.

    nanoGPT holds out the same documents with ``train_test_split(test_size=SHARE, seed=SEED)`` of ``datasets``.
    """
    order: NDArray[np.int64] = np.random.default_rng(SEED).permutation(documents)
    return order[: math.ceil(SHARE * documents)]


class _Documents:
    """The documents of a source, which are streamed instead of held in memory."""

    def __init__(self, source: Repository | Path) -> None:
        self.name = identity(source)
        directory = source.fetch(["plain_text/*.parquet"]) if isinstance(source, Repository) else source
        self._files = sorted(path for path in directory.rglob("*") if path.suffix in _FORMATS)
        formats = {_FORMATS[path.suffix] for path in self._files}
        if len(formats) != 1:
            raise UsageError(f"{directory}: must contain files of one format; supported: {', '.join(_FORMATS)}")
        self._format = formats.pop()

    @cached_property
    def count(self) -> int:
        """The number of documents. Counting reads all of them."""
        return sum(table.num_rows for table in self._tables())

    def batches(self) -> Iterator[list[str]]:
        """Yield all documents in order, in batches."""
        for table in self._tables():
            texts = table["text"].to_pylist()
            if not all(isinstance(text, str) for text in texts):
                raise UsageError(f"{self.name}: a document's text is not a string")
            yield texts

    def _tables(self) -> Iterator[Any]:
        from datasets import load_dataset  # noqa: PLC0415 - needs the extra `paper`

        files = [str(path) for path in self._files]
        rows = load_dataset(self._format, data_files=files, split="train", streaming=True).with_format("arrow")
        for table in rows.iter(batch_size=_BATCH):
            if "text" not in table.column_names:
                raise UsageError(f"{self.name}: no column text (columns: {', '.join(table.column_names)})")
            yield table


def _build(
    spec: PaperSpec, documents: _Documents, tokenizer: Tokenizer, directory: Path, stages: Stages
) -> dict[str, Any]:
    """Write the text's files into ``directory``, and return the manifest."""
    stages.enter("count")
    count = documents.count
    if spec.documents not in (None, count):
        raise UsageError(
            f"{documents.name}: {count:,} documents, expected {spec.documents:,}; "
            "files may be missing from the hub's cache: run again with access to the hub"
        )
    heldout = heldout_documents(count)
    if len(heldout) == count:
        raise UsageError(f"{documents.name}: too few documents for training and held-out text ({count})")
    stages.enter("encode")
    tokenizer.save(str(directory / "tokenizer.json"))
    tokens = _write_tokens(documents, heldout, tokenizer, directory, stages)
    return {
        "name": PAPER_NAME,
        "key": spec.key,
        "dataset": identity(spec.dataset),
        "tokenizer": identity(spec.tokenizer),
        "split": {"share": SHARE, "seed": SEED},
        "made_with": ", ".join([made_with(), *(f"{name} {version(name)}" for name in ("datasets", "transformers"))]),
        "figures": {"documents": {"train": count - len(heldout), "heldout": len(heldout)}, "tokens": tokens},
    }


def _write_tokens(
    documents: _Documents, heldout: NDArray[np.int64], tokenizer: Tokenizer, directory: Path, stages: Stages
) -> dict[str, int]:
    """Write ``train.bin`` in the documents' order and ``heldout.bin`` in ``heldout``'s order; return token counts."""
    rank = {int(number): position for position, number in enumerate(heldout)}
    kept = [""] * len(rank)
    seen = tokens = reported = 0
    with (directory / "train.bin").open("wb") as file:
        for texts in documents.batches():
            train = []
            for number, text in enumerate(texts, seen):
                if number in rank:
                    kept[rank[number]] = text
                else:
                    train.append(text)
            tokens += file.write(_encoded(tokenizer, train)) // 2
            seen += len(texts)
            if (percent := 100 * seen // documents.count) > reported:
                reported = percent
                stages.report(f"{seen:,} of {documents.count:,} documents, {tokens:,} tokens")
    data = _encoded(tokenizer, kept)
    (directory / "heldout.bin").write_bytes(data)
    return {"train": tokens, "heldout": len(data) // 2}


def _encoded(tokenizer: Tokenizer, documents: Sequence[str]) -> bytes:
    from re_bench.text.vocabulary import END_OF_TEXT, encode  # noqa: PLC0415 - opening a text needs no tokenizers

    end = tokenizer.token_to_id(END_OF_TEXT)
    assert end is not None  # checked by _load_tokenizer
    return b"".join(piece.tobytes() for piece in encode(tokenizer, documents, end))


def _load_tokenizer(source: Repository | Path) -> Tokenizer:
    """Return transformers' fast tokenizer, which treats ``<|endoftext|>`` in a document as ordinary text."""
    from transformers import GPT2TokenizerFast  # noqa: PLC0415 - needs the extra `paper`

    from re_bench.text.vocabulary import END_OF_TEXT, treat_special_tokens_as_text  # noqa: PLC0415 - as above

    directory = source.fetch(["tokenizer.json", "tokenizer_config.json"]) if isinstance(source, Repository) else source
    try:
        fast = GPT2TokenizerFast.from_pretrained(str(directory), local_files_only=True)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"{directory}: transformers cannot load the tokenizer ({str(error).splitlines()[0]})"
        ) from None
    tokenizer = treat_special_tokens_as_text(fast.backend_tokenizer)
    size = tokenizer.get_vocab_size()  # without files, transformers returns an empty tokenizer
    if tokenizer.token_to_id(END_OF_TEXT) is None or not SMALLEST <= size <= LARGEST:
        raise UsageError(f"{directory}: the tokenizer must have {END_OF_TEXT} and {SMALLEST} to {LARGEST} tokens")
    return tokenizer


def _need_packages() -> None:
    try:
        import datasets  # noqa: F401, PLC0415 - needs the extra `paper`
        import transformers  # noqa: F401, PLC0415 - as above
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{PAPER_NAME}: needs {error.name}; run: pip install -c constraints.txt -e 'common[paper]'"
        ) from None
