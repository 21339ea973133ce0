"""wgmma and tcgen05 are out of reach, which the pass and the analysis say."""

from __future__ import annotations

import os
import re
from pathlib import Path

# The DSL reads it when it is imported; no GPU is needed for that chip.
os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")

import pytest
from cute_warpgroup_kernel import CHIP, compile_with

from tilepass.activate import enabled
from tilepass.analysis.zero_structure import Failure, analyse, tag_sites
from tilepass.frontends.cute.lowering import lower_for_analysis, stock_pipeline
from tilepass.ir.engine import Module, copied, parse, print_generic

pytestmark = pytest.mark.traces


def line_of_the_gemm() -> int:
    source = Path(__file__).with_name("cute_warpgroup_kernel.py").read_text().splitlines()
    (line,) = (number for number, text in enumerate(source, 1) if "cute.gemm(" in text)
    return line


@pytest.fixture(scope="module")
def traced() -> tuple[Module, list[str]]:
    """The module, and what the pass says about it."""
    found: list[Module] = []

    def keep(_owner: object, module: Module, _function: str) -> None:
        found.append(copied(module))

    with enabled("cute-zero-mma", remarks="none") as session:
        compile_with(keep)
    return found[0], [remark.format() for remark in session.remarks]


def failure(lowered: Module) -> Failure:
    found = analyse(lowered).sites[0].failure
    assert found is not None
    return found


def lowered(module: Module) -> Module:
    clone = copied(module)
    assert tag_sites(clone) == 1
    return lower_for_analysis(clone, stock_pipeline(CHIP))


def test_the_pass_says_why_a_wgmma_stays(traced: tuple[Module, list[str]]) -> None:
    (remark,) = traced[1]
    assert f"cute_warpgroup_kernel.py:{line_of_the_gemm()}:" in remark
    assert "missed: gemm 0: out of reach: a wgmma reads B from shared memory" in remark


def test_the_analysis_says_why(traced: tuple[Module, list[str]]) -> None:
    found = failure(lowered(traced[0]))
    reason = "wgmma reads its operands from shared memory through descriptors: out of reach"
    assert found.reason == reason
    assert found.location is not None
    assert found.location.line == line_of_the_gemm()


def test_tcgen05_is_told_apart(traced: tuple[Module, list[str]]) -> None:
    text, count = re.subn(r"wgmma\.mma_async", "tcgen05.mma", print_generic(lowered(traced[0])))
    assert count == 1
    reason = failure(parse(text)).reason
    assert reason == (
        "tcgen05.mma reads its operands from shared or tensor memory through descriptors: "
        "out of reach"
    )
