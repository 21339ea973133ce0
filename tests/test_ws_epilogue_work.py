"""How much an epilogue computes, and what that decides."""

from __future__ import annotations

import pytest
from triton.backends.compiler import GPUTarget

from benchmarks.epilogue_work import WORKLOAD
from tilepass.activate import enabled
from tilepass.core.decisions import Fact
from tilepass.passes.triton.epilogue_warp_specialize.cost_model import scheme_choice


def facts(tile_n: int, work: float) -> dict[str, Fact]:
    """Of a nest that every scheme can be built for."""
    stages = dict.fromkeys(("ping_pong", "split_consumer", "cooperative"), 4)
    return {
        "arch": 90,
        "dot": "shared",
        "tile_m": 128,
        "tile_n": tile_n,
        "epilogue_work": work,
        **{f"stages_{name}": count for name, count in stages.items()},
    }


@pytest.mark.parametrize(
    ("tile_n", "work", "scheme"),
    [
        (128, 0.0, "ping-pong"),
        (128, 19.0, "ping-pong"),
        (128, 26.0, "cooperative"),
        (256, 0.0, "split-consumer"),
        (256, 10.0, "split-consumer"),
        (256, 13.0, "cooperative"),
        (256, 32.0, "cooperative"),
    ],
)
def test_all_warps_share_a_tile_whose_epilogue_is_long(
    tile_n: int, work: float, scheme: str
) -> None:
    choice = scheme_choice(facts(tile_n, work))
    assert choice is not None
    assert choice.value == scheme


@pytest.mark.parametrize(
    ("work", "gated", "instructions", "plan"),
    [
        ("exp", False, 5.0, "split-consumer, 4 stages, 2 C buffers, 4 subtiles, 2 of them late"),
        ("silu", True, 14.0, "cooperative, 4 stages"),
        ("gelu-erf", False, 32.0, "cooperative, 4 stages, 2 C buffers, 4 subtiles:"),
    ],
)
def test_work_is_counted_and_late_pieces_are_for_short_epilogues(
    work: str, gated: bool, instructions: float, plan: str
) -> None:
    fields = {"work": work, "epilogue": "residual" if gated else "none", "block_n": "256"}
    fields |= {"num_stages": "3"}
    config = WORKLOAD.config_from((256, 256, 256), fields)
    with enabled("epilogue-warp-specialize", remarks="none") as session:
        WORKLOAD.compile(config, GPUTarget("cuda", 90, 32))
    (decision,) = session.decisions
    assert decision.facts["epilogue_work"] == instructions
    (passed,) = [each.message for each in session.remarks if each.kind == "passed"]
    assert passed.startswith(plan)
