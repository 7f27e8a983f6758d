"""Small workspaces and small models."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch._export import utils as export_utils
from torch.export import decomp_utils, exported_program

from re_bench.data.files import import_file
from restricted_mlm.workspace import add_restricted

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = Path(__file__).parents[1]
sys.path.insert(0, str(TASK.parents[1] / "tests"))

SHAPE = (2, 16)
VOCABULARY = 65
PROFILE = {
    "profile": "cpu",
    "vocabulary": VOCABULARY,
    "mask_id": 64,
    "batch": SHAPE[0],
    "length": SHAPE[1],
    "limits": {"operations": 1e9, "elements": 1 << 20, "bytes": 1 << 20},
    "baseline": {"model": {"width": 8, "hidden": [16, 16]}},
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def quick_exports() -> Iterator[None]:
    """Have torch.export do quickly what it does for each model anew and which comes out the same each time."""
    original, lists = export_utils._collect_all_valid_cia_ops, dict[int, set[Any]]()
    checked = torch._ops.OperatorBase.py_impl

    def listed() -> set[Any]:
        """List the composite operators, once as long as none is added."""
        number = len(torch._C._dispatch_get_all_op_names())
        if number not in lists:
            lists[number] = original()
        return lists[number]

    def registered(operator: Any, key: Any) -> Any:
        """Give an operator a kernel, which export does ten thousand times for a model, without annotations."""
        if not isinstance(key, torch._C.DispatchKey):
            return checked(operator, key)

        def register(kernel: Any) -> Any:
            operator.py_kernels[key] = kernel
            operator._dispatch_cache.clear()
            return kernel

        return register

    with pytest.MonkeyPatch.context() as patch:
        for module in (exported_program, decomp_utils):
            patch.setattr(module, "_collect_all_valid_cia_ops", listed)
        patch.setattr(torch._ops.OperatorBase, "py_impl", registered)
        yield


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a small workspace without text."""
    directory = tmp_path / "workspace"
    shutil.copytree(TASK / "starter", directory)
    add_restricted(directory)
    (directory / "profile.json").write_text(json.dumps(PROFILE))
    return directory


@pytest.fixture
def model_of(tmp_path: Path) -> Any:
    """Return a function that writes a model file and imports it, under a name of its own."""

    def made(source: str) -> Any:
        path = tmp_path / "model.py"
        path.write_text(source)
        return import_file(path, f"made_up_model_{abs(hash(source))}").get_trained_model()

    return made
