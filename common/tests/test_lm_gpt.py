"""The model has GPT-2's parameter counts and names, is causal, and starts at the loss of a uniform guess."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs torch")

from re_bench.lm.gpt import GPT, GPTConfig, next_token_loss

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

SMALL = GPTConfig(vocab_size=97, block_size=16, n_layer=2, n_head=4, n_embd=32)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(**changes: Any) -> Any:
    torch.manual_seed(0)
    return GPT(GPTConfig(**vars(SMALL) | changes))


def random_tokens(*shape: int) -> Any:
    return torch.randint(SMALL.vocab_size, shape, generator=torch.Generator().manual_seed(1))


def on_meta(config: GPTConfig) -> Any:
    with torch.device("meta"):
        return GPT(config)


@pytest.mark.parametrize(
    ("config", "without", "with_positions"),
    [
        (GPTConfig(), 123_653_376, 124_439_808),
        (GPTConfig(n_layer=24, n_head=16, n_embd=1024), 353_774_592, 354_823_168),
        (GPTConfig(n_layer=48, n_head=25, n_embd=1600), 1_555_972_800, 1_557_611_200),
    ],
    ids=["gpt2", "gpt2-medium", "gpt2-xl"],
)
def test_parameter_counts_of_published_models(config: GPTConfig, without: int, with_positions: int) -> None:
    model = on_meta(config)
    assert (model.parameter_count(), model.parameter_count(positions=True)) == (without, with_positions)


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 8), st.integers(1, 500), st.integers(1, 64))
def test_parameter_and_flop_formulas(layers: int, heads: int, size: int, vocab: int, length: int) -> None:
    width = heads * size
    model = on_meta(GPTConfig(vocab, length, layers, heads, width))
    count = vocab * width + layers * (12 * width**2 + 13 * width) + 2 * width
    assert model.parameter_count() == count
    assert model.parameter_count(positions=True) == count + length * width
    assert model.flops_per_token(length) == 6 * count + 12 * layers * width * length
    without_bias = on_meta(GPTConfig(vocab, length, layers, heads, width, bias=False))
    assert without_bias.parameter_count() == count - layers * 11 * width - width


def test_state_dict_has_nanogpt_names_without_lm_head() -> None:
    expected: dict[str, tuple[int, ...]] = {"transformer.wte.weight": (97, 32), "transformer.wpe.weight": (16, 32)}
    shapes: dict[str, tuple[int, ...]] = {
        "ln_1": (32,),
        "attn.c_attn": (96, 32),
        "attn.c_proj": (32, 32),
        "ln_2": (32,),
    }
    shapes |= {"mlp.c_fc": (128, 32), "mlp.c_proj": (32, 128)}
    for part, shape in {f"h.{layer}.{name}": shape for layer in range(2) for name, shape in shapes.items()}.items():
        expected |= {f"transformer.{part}.weight": shape, f"transformer.{part}.bias": shape[:1]}
    expected |= {"transformer.ln_f.weight": (32,), "transformer.ln_f.bias": (32,)}
    assert {name: tuple(tensor.shape) for name, tensor in small().state_dict().items()} == expected
    without = {name for name in expected if not name.endswith("bias")}
    assert set(small(bias=False).state_dict()) == without


@given(st.integers(0, 15), st.integers(1, SMALL.vocab_size - 1))
def test_model_is_causal(place: int, shift: int) -> None:
    model, tokens = small(), random_tokens(2, 16)
    changed = tokens.clone()
    changed[0, place] = (changed[0, place] + shift) % SMALL.vocab_size
    with torch.no_grad():
        differs = (model(tokens) != model(changed)).any(-1)
    assert differs.tolist() == [[column >= place for column in range(16)], [False] * 16]


def test_embeddings_are_tied() -> None:
    model, tokens = small(), random_tokens(2, 16)
    with torch.no_grad():
        expected = model.hidden(tokens) @ model.state_dict()["transformer.wte.weight"].T
        torch.testing.assert_close(model(tokens), expected)
    tokens[tokens == 96] = 0
    next_token_loss(model, tokens).backward()
    assert (model.transformer["wte"].weight.grad[96] != 0).any()  # through the unembedding alone


@pytest.mark.parametrize("vocab", [97, 4096])
def test_new_model_has_the_loss_of_a_uniform_guess(vocab: int) -> None:
    model = small(vocab_size=vocab)
    tokens = torch.randint(vocab, (8, 17), generator=torch.Generator().manual_seed(1))
    assert next_token_loss(model, tokens).item() == pytest.approx(math.log(vocab), rel=0.01)


def test_initial_weights_match_gpt2() -> None:
    state = small(n_embd=128, n_layer=8).state_dict()
    for name, tensor in state.items():
        if name.endswith("c_proj.weight"):
            assert tensor.std().item() == pytest.approx(0.02 / 4, rel=0.05), name
        elif tensor.ndim > 1:
            assert tensor.std().item() == pytest.approx(0.02, rel=0.05), name
        else:
            assert (tensor == (1 if name.endswith("weight") else 0)).all(), name


def test_loss_is_cross_entropy_of_next_tokens() -> None:
    model, windows = small(), random_tokens(3, 17)
    with torch.no_grad():
        probabilities = model(windows[:, :-1]).double().softmax(-1)
        expected = -sum(probabilities[b, t, windows[b, t + 1]].log() for b in range(3) for t in range(16)) / 48
        assert next_token_loss(model, windows).item() == pytest.approx(expected.item(), rel=1e-5)


def test_loss_is_float32_under_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss = next_token_loss(small(), random_tokens(2, 17))
    assert loss.dtype == torch.float32


@pytest.mark.parametrize(
    "wrong", [{"n_embd": 30}, {"n_layer": 0}, {"vocab_size": 0}, {"block_size": -1}, {"n_head": 0}], ids=str
)
def test_invalid_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="sizes must be positive and n_embd a multiple of n_head, got GPTConfig"):
        GPTConfig(**vars(SMALL) | wrong)


@pytest.mark.parametrize("block", [1, 16])
def test_too_long_windows_are_refused(block: int) -> None:
    with pytest.raises(ValueError, match=f"{block + 1} tokens in a row, more than the model's block_size {block}"):
        small(block_size=block)(random_tokens(1, block + 1))
