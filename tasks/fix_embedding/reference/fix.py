# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""The reference: the rows of the embedding are all there, in the wrong places; find the place of each.

1. The rest of the model still knows which row follows which: one-token contexts give the probability of every row
   after every other. The training text tells how often each token follows each other. Two tables of the same thing,
   but for the unknown order: a graph matching problem.
2. It is solved by soft assignment (Gold and Rangarajan 1996): every token is spread over rows; how well a token and
   a row agree follows from where their neighbours are; and the spread is sharpened step by step. The first guess
   comes from how often tokens and rows occur at all.
3. Whole contexts settle the rest. Given the hidden states of a text, its likelihood is linear in which row belongs
   to which token: a token gains with a row what the sum of the hidden states before the token gives with that row. So
   the best order is a linear assignment.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from batches import RandomWindows
from gpt import GPT, GPTConfig
from safetensors.torch import save_file
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn.functional import log_softmax

HERE = Path(__file__).parent
PROFILE = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EMBEDDING = "transformer.wte.weight"
SOFTNESS = [0.5 * 0.75**step for step in range(8)]
"""Of the spread, in nats of agreement; sharper from step to step."""
SMOOTHING = 5.0
"""Occurrences that a token must have for its neighbours to count half."""
FREQUENCY_WEIGHT = 0.05
"""Of the first guess beside the neighbours."""
SINKHORN = 6
"""Times that the spread is normalised over rows and over tokens."""
PASSES = 64
"""Batches of whole contexts."""


def bigrams_of_rows(model: GPT) -> Tensor:
    """Return the log-probability that row b follows row a, [a, b]; rows are called by their places in the model."""
    places = torch.arange(model.config.vocab_size, device=DEVICE)[:, None]
    with torch.no_grad():
        return torch.cat([log_softmax(model(part)[:, 0], dim=-1) for part in places.split(512)])


def stationary(log_probability: Tensor) -> Tensor:
    """Return how often each row occurs in the long run."""
    probability = log_probability.exp()
    share = torch.full_like(probability[0], 1 / len(probability))
    for _ in range(30):
        share = share @ probability
    return share


def bigrams_of_text(tokens: np.ndarray, size: int) -> Tensor:
    """Return how often token b follows token a in the text, [a, b]."""
    counts = np.zeros(size * size, np.int64)
    for start in range(0, len(tokens) - 1, 1 << 22):
        part = tokens[start : start + (1 << 22) + 1].astype(np.int64)
        counts += np.bincount(part[:-1] * size + part[1:], minlength=size * size)
    return torch.from_numpy(counts.reshape(size, size)).float().to(DEVICE)


def spread(agreement: Tensor) -> Tensor:
    """Return a share of each row for each token, [token, row], that adds up to about one both ways (Sinkhorn)."""
    logs = agreement.clone()
    for _ in range(SINKHORN):
        logs -= logs.logsumexp(1, keepdim=True)
        logs -= logs.logsumexp(0, keepdim=True)
    return logs.exp_()


def match_bigrams(model: GPT, text: Tensor) -> Tensor:
    """Return how well each row agrees with each token, [token, row], by the rows and tokens before and after."""
    rows = bigrams_of_rows(model)
    share = stationary(rows)
    rows = rows - share.log()  # how much likelier than anywhere
    after = text / (text.sum(1, keepdim=True) + SMOOTHING)
    before = (text / (text.sum(0, keepdim=True) + SMOOTHING)).T.contiguous()
    occurs = (text.sum(1) + 1).log() - text.sum().log()
    guess = -((occurs[:, None] - share.log()[None]) ** 2)
    places, agreement = spread(2 * guess), guess
    for step, softness in enumerate(SOFTNESS):
        agreement = after @ (places @ rows.T) + before @ (places @ rows) + FREQUENCY_WEIGHT * guess
        places = spread(agreement / softness)
        report(f"soft assignment {step + 1} of {len(SOFTNESS)}: {(places.amax(1) > 0.5).sum().item()} tokens placed")  # noqa: PLR2004
    return agreement


def hidden_sums(model: GPT, embedding: Tensor) -> Tensor:
    """Return for each token the sum of the final hidden states before it, [token, width]."""
    model.transformer["wte"].weight.data.copy_(embedding)
    sums = torch.zeros_like(embedding)
    tokens = np.memmap(HERE / "data" / "train.bin", "<u2", "r")
    draw = RandomWindows(tokens, PROFILE["budget"]["batch"], PROFILE["context"], seed=1)
    with torch.no_grad():
        for _ in range(PASSES):
            window = torch.from_numpy(next(draw)).to(DEVICE)
            sums.index_add_(0, window[:, 1:].flatten(), model.hidden(window[:, :-1]).flatten(0, 1))
    return sums


def assign(score: Tensor) -> Tensor:
    """Return for each token its row, such that no row is used twice and the scores [token, row] add up to most."""
    return torch.from_numpy(linear_sum_assignment(score.cpu().double().numpy(), maximize=True)[1]).to(DEVICE)


def report(text: str) -> None:
    """Say on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Repair the model and save it."""
    model = GPT(GPTConfig(**PROFILE["large"]))
    state = torch.load(HERE / "large_model.pth", weights_only=True)
    model.load_state_dict(state)
    model.float().to(DEVICE).eval().requires_grad_(requires_grad=False)
    rows = state[EMBEDDING].float().to(DEVICE)
    text = bigrams_of_text(np.memmap(HERE / "data" / "train.bin", "<u2", "r"), len(rows))
    agreement = match_bigrams(model, text)
    order = assign(agreement)
    report("rows assigned by bigrams")
    sums = hidden_sums(model, rows[order])
    better = assign(sums @ rows.T + agreement)  # tokens that these windows lack keep their place by the bigrams
    report(f"whole contexts moved {(better != order).sum().item()} of {len(rows)} rows")
    state[EMBEDDING] = rows[better].to("cpu", state[EMBEDDING].dtype)
    save_file(state, HERE / "fixed_model.safetensors")
    (HERE / "fixed_model.pth").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
