"""A byte-level BPE vocabulary trained on the text itself, and texts as its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

END_OF_TEXT = "<|endoftext|>"
"""Stands after every document."""

END = 0
"""The token of END_OF_TEXT."""

_BATCH = 2000  # documents encoded at a time, by all cores; bounds the memory


def train_tokenizer(documents: Sequence[str], vocabulary: int) -> Tokenizer:
    """Return a byte-level BPE tokenizer with GPT-2's way of splitting words; the same documents give the same one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer, length=len(documents))
    return treat_special_tokens_as_text(tokenizer)


def open_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer in a file; END_OF_TEXT within a text is text to it, not the token."""
    return treat_special_tokens_as_text(Tokenizer.from_file(str(path)))


def encode(tokenizer: Tokenizer, documents: Sequence[str], end: int = END) -> Iterator[NDArray[np.uint16]]:
    """Yield pieces of the tokens of all documents in order, each document followed by the token ``end``."""
    for start in range(0, len(documents), _BATCH):
        batch = tokenizer.encode_batch_fast(documents[start : start + _BATCH], add_special_tokens=False)
        yield np.concatenate([np.array([*encoding.ids, end], "<u2") for encoding in batch])


def treat_special_tokens_as_text(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer after making it encode END_OF_TEXT within a text as ordinary text.

    Documentation of tokenizers mentions the special token; a reader must not take that for an end.
    """
    tokenizer.encode_special_tokens = True
    return tokenizer
