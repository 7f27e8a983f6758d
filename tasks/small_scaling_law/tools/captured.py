"""Training steps captured in a CUDA graph, several runs beside each other: a step of a narrow model is mostly waiting.

``install()`` makes ``training.train`` take its steps so; ``beside()`` runs a function in a thread and a CUDA stream of
its own. One thread at a time runs; it passes the turn on after each step, whose kernels the GPU is then still working
on. What a step computes stays the same, but that the learning rate is rounded to single precision. What that makes of
losses was measured at 300 steps, see ``docs/tasks/small_scaling_law.md``; longer runs may drift further apart.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
import training  # type: ignore[import-not-found] # beside the sweep, as agents have it
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterator

_EAGER = 3
"""Steps before the capture, in which libraries choose and allocate what they need."""


class StoppedError(Exception):
    """All runs are to end."""


class Turns:
    """A lock that threads get in the order in which they asked for it."""

    def __init__(self) -> None:
        """Nobody has it yet."""
        self._state = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False
        self.stopped = False

    def take(self) -> None:
        """Wait for the turn.

        Raises:
            StoppedError: with the turn, if all runs are to end.
        """
        mine = threading.Lock()
        mine.acquire()
        with self._state:
            waits = self._taken
            self._taken = True
            if waits:
                self._waiting.append(mine)
        if waits:
            mine.acquire()
        if self.stopped:
            raise StoppedError

    def give(self) -> None:
        """Let the next thread have it."""
        with self._state:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


TURNS = Turns()
_STREAMS: deque[torch.cuda.Stream] = deque()  # those that are free


@contextmanager
def beside() -> Iterator[None]:
    """Have the turn, and a stream that no other thread uses, but for the times in which others have the turn."""
    try:
        TURNS.take()
        stream = _STREAMS.pop() if _STREAMS else torch.cuda.Stream()
        try:
            with torch.cuda.stream(stream):
                yield
                stream.synchronize()
        finally:
            _STREAMS.append(stream)
    finally:
        TURNS.give()


class _Captured(training._Run):  # noqa: SLF001 - the loop is its own file, which agents get unchanged
    """A run whose steps, from the fourth on, replay one that was captured."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clock = training._Clock(torch.device("cpu"))  # noqa: SLF001 - a GPU's would wait for all runs
        self.graph: torch.cuda.CUDAGraph | None = None
        self.batch: Tensor | None = None
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["capturable"] = True
                group["lr"] = torch.tensor(group["lr"], device=self.device)

    def advance(self) -> None:
        """Take a step; as in the class above, but for the graph."""
        self.clock.start()
        batch = self.next_batch()
        self.batch = batch.clone() if self.batch is None else self.batch.copy_(batch)
        share = training.learning_rate_share(self.outcome.steps + 1, self.settings)
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"].fill_(rate * share)
        if self.outcome.steps < _EAGER:
            self.compute()
        else:
            if self.graph is None:
                self.graph = torch.cuda.CUDAGraph()
                self.model.zero_grad(set_to_none=True)
                # On the run's own stream: libraries keep a workspace for each, which runs beside it must not share.
                with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream()):
                    self.compute()
            self.graph.replay()
        self.outcome.steps += 1
        self.outcome.tokens += batch.numel()
        self.clock.count(batch.numel())
        TURNS.give()
        TURNS.take()

    def mean_loss(self) -> float:
        """Return it as in the class above, but let others have the turn until the GPU has come so far."""
        reached = torch.cuda.Event()
        reached.record()
        while not reached.query():
            TURNS.give()
            TURNS.take()
        return float(super().mean_loss())

    def compute(self) -> None:
        """Change the parameters by what the batch says."""
        self.model.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast, cache_enabled=False):
            loss = self.loss(self.model, self.batch)
        loss.backward()
        if self.settings.clip:
            nn.utils.clip_grad_norm_(self.trained, self.settings.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        self.loss_sum += loss.detach()


def install() -> None:
    """Make ``training.train`` capture its steps."""
    training._Run = _Captured  # noqa: SLF001 - as above
