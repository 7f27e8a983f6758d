"""Training learns, reports, evaluates, and resumes with the same bits."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs torch")


from re_bench.lm.gpt import GPT, GPTConfig, next_token_loss
from re_bench.lm.training import Outcome, Settings, fast_bfloat16, learning_rate_share, train
from re_bench.text import RandomWindows

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

TOKENS = np.random.default_rng(0).integers(0, 61, 5000).astype(np.uint16)
REPEATING = np.tile(np.arange(10, dtype=np.uint16), 100)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def new_model(width: int = 16) -> Any:
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=61, block_size=8, n_layer=2, n_head=2, n_embd=width))


def windows(tokens: Any = TOKENS) -> RandomWindows:
    return RandomWindows(tokens, batch=4, length=8, seed=3)


def settings(steps: int, **changes: Any) -> Settings:
    return Settings(steps=steps, learning_rate=1e-2, **{"warmup": 2, "report_every": 0} | changes)


def run(model: Any, settings: Settings, loss: Any = next_token_loss, batches: Any = None, **more: Any) -> Outcome:
    return train(model, windows() if batches is None else batches, loss, settings, **{"say": lambda _: None} | more)


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in one.state_dict().items())


def never(_model: Any) -> float:
    pytest.fail("must not be called")


def masked_loss(model: Any, tokens: Any) -> Any:
    """Return a loss that depends on torch's random numbers."""
    masked = torch.rand(tokens[:, 1:].shape) < 0.5
    logits = model(tokens[:, :-1].masked_fill(masked, 0))
    return torch.nn.functional.cross_entropy(logits[masked], tokens[:, :-1][masked])


def test_loss_falls_on_a_repeating_pattern() -> None:
    outcome = run(new_model(32), settings(150, report_every=50), batches=windows(REPEATING))
    assert [step for step, _ in outcome.losses] == [50, 100, 150]
    assert outcome.losses[-1][1] < 0.1 < outcome.losses[0][1]
    assert (outcome.steps, outcome.tokens) == (150, 150 * 4 * 9)


def test_step_equals_adamw() -> None:
    model, other = new_model(), new_model()
    run(model, settings(1, warmup=0, final=1.0, autocast=False, weight_decay=0.5))
    groups = [
        {"params": [part for part in other.parameters() if part.ndim > 1], "weight_decay": 0.5},
        {"params": [part for part in other.parameters() if part.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    next_token_loss(other, torch.from_numpy(next(windows()))).backward()
    torch.nn.utils.clip_grad_norm_(other.parameters(), 1.0)
    optimizer.step()
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, other.state_dict()[name])


def test_frozen_parameters_stay_and_shared_ones_are_updated_once() -> None:
    model, plain = new_model(), new_model()
    before = new_model().state_dict()
    model.unembedding = model.transformer["wte"]  # the same parameter under two names
    for one in (model, plain):
        for name, parameter in one.named_parameters():
            parameter.requires_grad_(".mlp." not in name)
        run(one, settings(3))
    changed = {name for name, tensor in before.items() if not torch.equal(tensor, model.state_dict()[name])}
    assert changed == {name for name in before if ".mlp." not in name}
    assert same(plain, model)


@pytest.mark.parametrize("autocast", [True, False, None])
def test_autocast_follows_settings_or_hardware(autocast: bool | None) -> None:
    seen = set()

    def loss(model: Any, tokens: Any) -> Any:
        logits = model(tokens[:, :-1])
        seen.add(logits.dtype)
        return logits.float().square().mean()

    run(new_model(), settings(1, autocast=autocast), loss)
    wanted = fast_bfloat16(torch.device("cpu")) if autocast is None else autocast
    assert seen == {torch.bfloat16 if wanted else torch.float32}


steps_and_warmups = st.integers(1, 300).flatmap(lambda steps: st.tuples(st.just(steps), st.integers(0, steps)))


@given(steps_and_warmups, st.floats(0, 1))
def test_learning_rate_schedule(numbers: tuple[int, int], final: float) -> None:
    steps, warmup = numbers
    how = Settings(steps, 1.0, warmup, final)
    shares = [learning_rate_share(step, how) for step in range(1, steps + 1)]
    assert shares[:warmup] == [step / warmup for step in range(1, warmup + 1)]
    falling = shares[max(0, warmup - 1) :]
    assert all(one >= other - 1e-12 for one, other in pairwise(falling))
    assert all(final - 1e-12 <= share <= 1 for share in falling)
    assert warmup == steps or shares[-1] == pytest.approx(final, abs=1e-12)
    assert learning_rate_share(steps + 7, how) == pytest.approx(final, abs=1e-12)
    if (steps - warmup) % 2 == 0 and steps > warmup:
        middle = learning_rate_share((steps + warmup) // 2, how)
        assert middle == pytest.approx((1 + final) / 2)


def test_evaluations_run_at_intervals_without_gradients() -> None:
    seen = []

    def evaluate(model: Any) -> Any:
        assert not model.training
        assert not torch.is_grad_enabled()
        seen.append(True)
        return np.float64(len(seen))

    model = new_model()
    lines: list[str] = []
    outcome = run(model, settings(7, evaluate_every=3), evaluate=evaluate, say=lines.append)
    assert outcome.evaluations == [(3, 1.0), (6, 2.0), (7, 3.0)]
    assert {type(found) for _, found in outcome.evaluations} == {float}
    assert lines == ["step 3: evaluation 1.0000", "step 6: evaluation 2.0000", "step 7: evaluation 3.0000"]
    assert model.training
    assert run(new_model(), settings(3), evaluate=never).evaluations == []


def test_reports_have_the_mean_loss_since_the_last() -> None:
    losses: list[float] = []
    lines: list[str] = []

    def loss(model: Any, tokens: Any) -> Any:
        found = next_token_loss(model, tokens)
        losses.append(found.item())
        return found

    outcome = run(new_model(), settings(5, report_every=2), loss, say=lines.append)
    means = [sum(losses[:2]) / 2, sum(losses[2:4]) / 2, losses[4]]
    assert [step for step, _ in outcome.losses] == [2, 4, 5]
    assert [mean for _, mean in outcome.losses] == pytest.approx(means)
    assert lines[0] == f"step 2 of 5: loss {means[0]:.4f}, 0 tokens/s"


class Ending(RandomWindows):
    """The same windows, but only ``count`` batches, to interrupt a training."""

    def __init__(self, count: int) -> None:
        super().__init__(TOKENS, batch=4, length=8, seed=3)
        self.left = count

    def __next__(self) -> Any:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return super().__next__()


def interrupt(path: Path, how: Settings, stop: int, loss: Any = next_token_loss, **more: Any) -> None:
    with pytest.raises(ValueError, match=f"^the batches end after {stop} of {how.steps} steps$"):
        run(new_model(), how, loss, Ending(stop), checkpoint=path, **more)


def noisy(model: Any) -> Any:
    return model.transformer["wpe"].weight.sum() + torch.rand(())


@pytest.mark.parametrize("loss", [next_token_loss, masked_loss])
@pytest.mark.parametrize("stop", [3, 4, 8])
def test_resumed_training_equals_uninterrupted_one(tmp_path: Path, loss: Any, stop: int) -> None:
    whole, path = new_model(), tmp_path / "new" / "checkpoint.pt"
    how = settings(9, report_every=5, evaluate_every=3, save_every=2)
    expected = run(whole, how, loss, evaluate=noisy)
    interrupt(path, how, stop, loss, evaluate=noisy)
    resumed = new_model()
    lines: list[str] = []
    torch.manual_seed(99)
    found = run(resumed, how, loss, evaluate=noisy, checkpoint=path, say=lines.append)
    assert lines[0] == f"resumed at step {stop // 2 * 2} from {path}"
    assert same(whole, resumed)
    assert (found.steps, found.tokens) == (9, expected.tokens)
    assert (found.losses, found.evaluations) == (expected.losses, expected.evaluations)
    assert [file.name for file in path.parent.iterdir()] == ["checkpoint.pt"]


KILLED = """
import os, signal, sys, torch
sys.path.insert(0, sys.argv[1])
from test_lm_training import *

class Bomb:
    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGKILL)

class Killing(RandomWindows):
    def state(self):
        state = super().state()
        return Bomb() if state["step"] == 6 else state

torch.set_num_threads(1)
batches = Killing(TOKENS, batch=4, length=8, seed=3)
run(new_model(), settings(9, save_every=2), batches=batches, checkpoint=Path(sys.argv[2]))
"""


def test_kill_during_save_keeps_the_previous_checkpoint(tmp_path: Path) -> None:
    path, whole, resumed = tmp_path / "checkpoint.pt", new_model(), new_model()
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert sorted(file.name for file in tmp_path.iterdir()) == [".checkpoint.pt.unfinished", "checkpoint.pt"]
    run(whole, settings(9))
    lines: list[str] = []
    run(resumed, settings(9), checkpoint=path, say=lines.append)
    assert lines == [f"resumed at step 4 from {path}"]
    assert same(whole, resumed)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_finished_training_returns_the_saved_outcome(tmp_path: Path) -> None:
    path, model, again = tmp_path / "checkpoint.pt", new_model(), new_model()
    how = settings(4, report_every=2, evaluate_every=4)
    done = run(model, how, checkpoint=path, evaluate=lambda _model: 1.5)
    written = path.stat().st_mtime_ns
    found = run(again, how, batches=iter([]), checkpoint=path, evaluate=never)
    assert same(model, again)
    assert (found.losses, found.evaluations, found.steps) == (done.losses, [(4, 1.5)], 4)
    assert (found.seconds, found.tokens_per_second, path.stat().st_mtime_ns) == (0, 0, written)


def frozen_embedding(model: Any) -> Any:
    model.transformer["wte"].weight.requires_grad_(requires_grad=False)
    return model


@pytest.mark.parametrize(
    ("make", "steps", "problem"),
    [
        (lambda: new_model(32), 4, "checkpoint of another model, or with other frozen parameters"),
        (lambda: frozen_embedding(new_model()), 4, "checkpoint of another model, or with other frozen parameters"),
        (new_model, 3, "at step 4, beyond the requested 3"),
    ],
    ids=["wider", "frozen", "further"],
)
def test_checkpoint_that_does_not_fit_is_refused(tmp_path: Path, make: Any, steps: int, problem: str) -> None:
    path = tmp_path / "checkpoint.pt"
    run(new_model(), settings(4), checkpoint=path)
    model, before = make(), make()
    with pytest.raises(ValueError, match=f"^{path}: {problem}; delete it or choose another file$"):
        run(model, settings(steps), checkpoint=path)
    assert same(model, before)


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "weights", "list"])
def test_damaged_checkpoint_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint.pt"
    run(new_model(), settings(1), checkpoint=path)
    if damage in {"weights", "list"}:
        torch.save(new_model().state_dict() if damage == "weights" else [1, 2], path)
    else:
        path.write_bytes({"empty": b"", "text": b"hello\n", "cut": path.read_bytes()[:-2000]}[damage])
    with pytest.raises(ValueError, match=f"^{path}: damaged, or not a checkpoint of this program; delete it"):
        run(new_model(), settings(2), checkpoint=path)


@pytest.mark.parametrize("when", [{"report_every": 4}, {"save_every": 4}, {}], ids=str)
def test_nonfinite_loss_stops_training(tmp_path: Path, when: dict[str, int]) -> None:
    calls = iter(range(1, 100))

    def loss(model: Any, tokens: Any) -> Any:
        return next_token_loss(model, tokens) * (float("nan") if next(calls) == 3 else 1)

    path, last = tmp_path / "checkpoint.pt", 4 if when else 6
    with pytest.raises(FloatingPointError, match=f"^the training loss is nan at step {last}; try a lower learning"):
        run(new_model(), settings(6, **when), loss, checkpoint=path)
    assert not path.exists()


def test_model_without_trainable_parameters_is_refused() -> None:
    model = new_model().requires_grad_(requires_grad=False)
    with pytest.raises(ValueError, match="no trainable parameter; are all frozen"):
        run(model, settings(1))
