"""The passes in Triton's real pipeline: what they do to machine code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from passes_kernels import (
    BLACKWELL,
    HOPPER,
    compile_carrying,
    compile_matmul,
    late_fold,
    swapped_pointers,
)

from tilepass.activate import enabled
from tilepass.binary.ptxas import run_ptxas
from tilepass.binary.tools import find_tools
from tilepass.core.errors import PassFailure
from tilepass.core.versions import triton_version
from tilepass.kernels.mxfp4_matmul_triton import WORKLOAD as MXFP4


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def ptx(pipeline: str, **arguments: Any) -> str:
    """Machine code of the matmul under a pipeline."""
    with enabled(pipeline, remarks="none"):
        return compile_matmul(**arguments).asm["ptx"]


def test_flatten_off_gives_what_the_source_without_flatten_gives() -> None:
    assert ptx("flatten-loops{mode=off}", flatten=True) == ptx("", flatten=False)


def test_flatten_on_gives_what_the_source_with_flatten_gives() -> None:
    """With counts that are proven not to be negative nothing needs to be clamped."""
    stock = ptx("", flatten=True, assume=True)
    assert ptx("flatten-loops{mode=on}", flatten=False, assume=True) == stock
    assert ptx("", flatten=False, assume=True) != stock


def test_flatten_on_clamps_where_triton_needs_it() -> None:
    """The maxima are the only difference to the source with flatten; LLVM merges that of the inner
    loop with the one that fusing makes anyway."""
    stock = ptx("", flatten=True)
    rewritten = ptx("flatten-loops{mode=on}", flatten=False)
    assert rewritten != stock
    assert -8 <= rewritten.count(";") - stock.count(";") <= 2
    assert rewritten.count("wgmma.mma_async") == stock.count("wgmma.mma_async")


def test_flatten_auto_flattens_bf16() -> None:
    with enabled("flatten-loops", remarks="none") as session:
        automatic = compile_matmul(flatten=False, tile=(128, 256)).asm["ptx"]
    assert automatic == ptx("flatten-loops{mode=on}", flatten=False, tile=(128, 256))
    assert [decision.source for decision in session.decisions] == ["cost-model"]


@pytest.mark.parametrize("flatten", ["auto", "on"])
def test_flatten_is_decided_where_fusion_reads_the_loop(flatten: str) -> None:
    """What Triton's passes in ttgir fold away is gone when the proof is made."""
    reason = "a value that the tile loop carries is read after its next value is known"
    if flatten == "on":
        with enabled("flatten-loops{mode=on}"), pytest.raises(PassFailure, match=reason):
            compile_carrying(late_fold, "*fp32")
        return
    with enabled("flatten-loops", remarks="none") as session:
        compile_carrying(late_fold, "*fp32")
    (remark,) = session.remarks
    assert (remark.kind, reason in remark.message) == ("missed", True)


def test_flatten_sees_through_swapped_pointers() -> None:
    """What the next tile's dots read may be what this tile stores."""
    with (
        enabled("flatten-loops{mode=on}"),
        pytest.raises(PassFailure, match=r"tt\.load may read what the tile loop stores"),
    ):
        compile_carrying(swapped_pointers, "*fp16")


@pytest.mark.parametrize("occupancy", [1, 2])
def test_flatten_auto_does_not_flatten_register_operands(occupancy: int) -> None:
    config = MXFP4.config_for((64, 8192, 8192), occupancy=occupancy, flatten=True)
    with enabled("flatten-loops", remarks="none") as session:
        compiled = MXFP4.compile(config, HOPPER)
    assert "tt.flatten" in compiled.asm["ttir"]
    assert "tt.flatten" not in compiled.asm["ttgir"]
    (decision,) = session.decisions
    assert (decision.value, decision.facts["dot"]) == ("off", "register-a")
    assert decision.facts["programs_per_sm"] == occupancy


def serialized(compiled: Any) -> bool:
    """Whether ptxas says that it runs one wgmma after the other."""
    return run_ptxas(compiled.asm["ptx"], find_tools(90), compiled.metadata._asdict()).serialized


def test_fix_dot_wait_ends_serialization() -> None:
    """Triton 3.6 lets the epilogue of a flattened loop read an unfinished accumulator."""
    config = MXFP4.config_for((128, 8192, 8192), occupancy=2, flatten=True)
    stock = MXFP4.compile(config, HOPPER)
    with enabled("fix-dot-wait", remarks="none") as session:
        fixed = MXFP4.compile(config, HOPPER)
    assert not serialized(fixed)
    if triton_version().version < (3, 7):
        assert serialized(stock)
    assert (stock.asm["ptx"] != fixed.asm["ptx"]) == bool(session.remarks) == serialized(stock)


@pytest.mark.parametrize("flatten", [False, True])
def test_fix_dot_wait_leaves_covered_reads_alone(flatten: bool) -> None:
    assert ptx("fix-dot-wait", flatten=flatten) == ptx("", flatten=flatten)


def test_strip_assume_lets_specialized_loops_compile() -> None:
    arguments: Any = {"flatten": False, "specialize": True, "assume": True, "num_warps": 4}
    with pytest.raises(RuntimeError, match="PassManager::run failed"):
        compile_matmul(**arguments)
    with enabled("strip-assume", remarks="none"):
        compiled = compile_matmul(**arguments)
    assert "ttg.warp_specialize" in compiled.asm["ttgir"]


def tensor_memory(pipeline: str) -> tuple[list[str], int]:
    """The buffers in tensor memory of a flattened 256x256 tile, and the columns they take."""
    with enabled(pipeline, remarks="none"):
        compiled = compile_matmul(flatten=True, tile=(256, 256), target=BLACKWELL)
    pattern = r"ttng\.tmem_alloc.*-> \(?!ttg\.memdesc<([\dx]+)xf32"
    return re.findall(pattern, compiled.asm["ttgir"]), compiled.metadata.tmem_size


def test_acc_multi_buffer_makes_the_accumulators_fit() -> None:
    """Triton allocates more than the 512 columns that there are; no launch would succeed."""
    assert tensor_memory("") == (["2x256x256"], 1024)
    assert tensor_memory("acc-multi-buffer") == (["256x256"], 512)
    assert tensor_memory("acc-multi-buffer{mode=allow}") == (["2x256x256"], 1024)


def test_forced_decision_that_cannot_be_carried_out_is_an_error() -> None:
    with enabled("acc-multi-buffer{mode=disallow}"), pytest.raises(PassFailure, match="registers"):
        compile_matmul(flatten=True)
