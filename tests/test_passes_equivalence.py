"""What our passes leave computes the same at the end of ttgir, bit by bit, executed on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
from sim_kernels import simulated

from tilepass.activate import enabled
from tilepass.testing import assert_equivalent, program_of

MATMUL = "160,N=272,K=112,a_desc=160x112,b_desc=272x112,c_desc=160x272"
NO_STEPS = "160,N=272,K=0,a_desc=160x1,b_desc=272x1,c_desc=160x272"
NESTED: dict[str, Any] = {"block_n": 128, "programs": 3, "flatten": False}


@pytest.mark.parametrize(
    ("pipeline", "fields", "arch"),
    [
        ("flatten-loops{mode=on}", NESTED, 90),
        ("flatten-loops{mode=off}", {**NESTED, "flatten": True}, 90),
        ("flatten-loops{mode=on},fix-dot-wait", {**NESTED, "epilogue": "bias_gelu"}, 90),
        ("acc-multi-buffer{mode=disallow}", NESTED, 100),
        ("acc-multi-buffer{mode=allow},flatten-loops{mode=on}", NESTED, 100),
    ],
)
def test_a_rewritten_matmul_computes_the_same(
    pipeline: str, fields: dict[str, Any], arch: int
) -> None:
    shape = (160, 272, 112)
    plain = simulated("persistent_matmul", shape, arch, **fields)
    with enabled(pipeline, remarks="none") as session:
        rewritten = simulated("persistent_matmul", shape, arch, **fields)
    assert [remark for remark in session.remarks if remark.kind == "passed"]
    assert rewritten.texts["ttgir"] != plain.texts["ttgir"]
    before, after = program_of(plain.texts["ttgir"]), program_of(rewritten.texts["ttgir"])
    assert_equivalent(before, after, shapes=[MATMUL, NO_STEPS], seeds=1, grid=(3,))


def test_waits_in_front_of_registers_change_no_value() -> None:
    shape, pipeline = (64, 256, 256), "fix-dot-wait{registers=on}"
    plain = simulated("mxfp4_matmul", shape, 90, guard=False)
    with enabled(pipeline, remarks="none") as session:
        rewritten = simulated("mxfp4_matmul", shape, 90, guard=False)
    assert [remark for remark in session.remarks if remark.kind == "passed"]
    assert rewritten.texts["ttgir"] != plain.texts["ttgir"]
    assert plain.disagreement() is None
    assert rewritten.disagreement() is None
