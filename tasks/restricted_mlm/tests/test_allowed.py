from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import save

from re_bench.data.files import import_file
from restricted_mlm.sandboxed.restricted import export, graph, interpret, plan
from restricted_mlm.sandboxed.restricted.refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

snippets = import_file(Path(__file__).with_name("snippets.py"), "restricted_mlm_snippets")

SHAPE, VOCABULARY = (2, 16), 65
LIMITS = plan.Limits(1 << 20, 1e9)


@pytest.fixture(scope="module", autouse=True)
def made_up_operator() -> Iterator[None]:
    with torch.library._scoped_library("made_up", "DEF") as library:
        library.define("exponential(Tensor x) -> Tensor")
        library.impl("exponential", torch.exp, "CompositeExplicitAutograd")
        torch.library.register_fake("made_up::exponential", torch.empty_like, lib=library)
        yield


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(snippets.all_of(snippets.INNOCENT.values()), id="all"),
        *(pytest.param(text, id=name, marks=pytest.mark.slow) for name, text in snippets.INNOCENT.items()),
    ],
)
def test_innocent_models_are_taken_and_give_what_forward_gives(model_of: Any, tmp_path: Path, statement: str) -> None:
    model = model_of(snippets.source(statement))
    written, tensors = export.export(model, SHAPE, tmp_path)
    written = graph.parse(graph.dump(written))
    planned = plan.plan(written, SHAPE, VOCABULARY, LIMITS)
    run = interpret.Interpreter(written, planned, interpret.load_tensors(written, save(tensors)))
    tokens = torch.randint(0, VOCABULARY, SHAPE)
    with torch.no_grad():
        assert torch.allclose(run(tokens), model(tokens), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        pytest.param(*pair, id=pair[0], marks=[pytest.mark.slow] * (pair[0] not in snippets.QUICK))
        for pair in snippets.FORBIDDEN.items()
    ],
)
def test_forbidden_ones_are_refused_by_operator_and_line(
    model_of: Any, tmp_path: Path, expression: str, reason: str
) -> None:
    model = model_of(snippets.source(f"y = {expression}"))
    with pytest.raises(RefusedError, match=reason) as caught:
        export.export(model, SHAPE, tmp_path)
    # Helper functions are named by their own line.
    line = re.match(r"model\.py:(\d+): ", str(caught.value))
    assert line is not None, caught.value
    helpers = ("exponential(x)", "Exponential.apply", "patched", "self.count")
    assert int(line[1]) == snippets.LINE or expression.startswith(helpers)
