"""`fix-dot-wait` and the registers of dots: what ptxas makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from passes_kernels import HOPPER, compile_matmul, compile_matmul_of_bytes

from tilepass.activate import Session, enabled
from tilepass.binary.figures import kernel_figures
from tilepass.core.versions import triton_version
from tilepass.kernels import get_workload
from tilepass.kernels.workload import Shape

REPAIRED = triton_version().version >= (3, 9)
"""Its ptxas keeps registers that are in flight over a back edge."""
CASES: list[tuple[Shape, dict[str, Any]]] = [
    ((16, 8192, 8192), {"occupancy": 2, "split_k": 1}),
    ((64, 8192, 8192), {"occupancy": 1, "split_k": 4}),
    ((256, 8192, 8192), {"occupancy": 2, "split_k": 4}),
]


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def compile_mxfp4(pipeline: str, shape: Shape, **fields: Any) -> tuple[Any, Session]:
    """The kernel, not flattened, and what happened to it."""
    workload = get_workload("mxfp4_matmul")
    config = workload.config_for(shape, flatten=False, **fields)
    with enabled(pipeline, remarks="none") as session:
        return workload.compile(config, HOPPER), session


@pytest.mark.parametrize(("shape", "fields"), CASES)
def test_registers_in_flight_are_not_overwritten(shape: Shape, fields: dict[str, Any]) -> None:
    stock, _ = compile_mxfp4("", shape, **fields, guard=False)
    fixed, session = compile_mxfp4("fix-dot-wait{registers=on}", shape, **fields, guard=False)
    before, after = kernel_figures(stock), kernel_figures(fixed)
    assert (before.register_hazards == 0) == REPAIRED
    assert ("registers OVERWRITTEN" in before.summary()) != REPAIRED
    assert before.to_dict()["register_hazards"] == before.register_hazards
    assert after.register_hazards == 0
    assert "OVERWRITTEN" not in after.summary()
    assert not after.serialized
    assert [remark.kind for remark in session.remarks] == ["passed"]
    assert fixed.asm["ttgir"].count("pendings = 0") == stock.asm["ttgir"].count("pendings = 0") + 1


def test_auto_leaves_alone_what_needs_no_wait() -> None:
    """A repaired Triton; a kernel that waits itself."""
    shape, fields = CASES[0]
    _, session = compile_mxfp4("fix-dot-wait", shape, **fields, guard=False)
    assert bool(session.remarks) != REPAIRED
    _, session = compile_mxfp4("fix-dot-wait{registers=on}", shape, **fields, guard=True)
    assert not session.remarks


def test_bytes_are_loaded_behind_the_wait() -> None:
    stock = kernel_figures(compile_matmul_of_bytes())
    with enabled("fix-dot-wait{registers=on}", remarks="none") as session:
        fixed = kernel_figures(compile_matmul_of_bytes())
    assert (stock.register_hazards == 0) == REPAIRED
    assert fixed.register_hazards == 0
    assert not fixed.serialized
    assert ["ttg.local_load" in remark.message for remark in session.remarks] == [True]


def test_operands_in_shared_memory_keep_their_code() -> None:
    with enabled("fix-dot-wait{registers=on}", remarks="none") as session:
        rewritten = compile_matmul(flatten=False)
    assert rewritten.asm["ptx"] == compile_matmul(flatten=False).asm["ptx"]
    assert not session.remarks


def test_attention_waits_for_its_scores() -> None:
    """P, in registers, is computed from scores that a wait for all dots stands before."""
    workload = get_workload("attention")
    config = workload.config_for((4, 32, 4096, 128), causal=True)
    with enabled("fix-dot-wait{registers=on}", remarks="none") as session:
        compiled = workload.compile(config, HOPPER)
    assert "#ttg.dot_op<{opIdx = 0" in compiled.asm["ttgir"]
    assert not session.remarks
    assert kernel_figures(compiled).register_hazards == 0
