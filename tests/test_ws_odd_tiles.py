"""Tiles that few kernels have: left to itself the pass refuses or rewrites, and never ends the
user's compilation."""

from __future__ import annotations

import itertools

import pytest

from tests.ws_core_support import compile_with
from tests.ws_split_kernels import Nest, run_pass
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.passes.triton.epilogue_warp_specialize.schemes import SCHEMES

_TILES = list(itertools.product((64, 256), (8, 16, 32, 256), (4, 8)))


@pytest.mark.parametrize("epilogue", ["bias", "residual", "row"])
def test_every_tile_is_refused_or_rewritten(epilogue: str) -> None:
    """What comes out Triton accepts."""
    specialized = 0
    for m, n, warps in _TILES:
        module = run_pass(Nest(epilogue, m, n, warps).module(), "epilogue-warp-specialize")
        specialized += "ttg.warp_specialize" in engine.operation_names(module)
    assert 4 <= specialized < len(_TILES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_forced_scheme_is_built_or_an_error_with_the_reason(scheme: str) -> None:
    reasons: list[str] = []
    for m, n, warps in _TILES:
        nest = Nest("bias", m, n, warps)
        try:
            run_pass(nest.module(), f"epilogue-warp-specialize{{scheme={scheme}}}")
        except PassFailure as error:
            reasons.append(str(error))
    assert 1 <= len(reasons) < len(_TILES)
    assert all("cannot be specialized so: " in each for each in reasons)


@pytest.mark.parametrize(
    ("block_m", "block_n", "num_warps"), [("128", "16", "8"), ("256", "16", "4"), ("64", "16", "8")]
)
def test_columns_of_fp32_that_are_too_few(block_m: str, block_n: str, num_warps: str) -> None:
    """A quarter of 16 columns is a row that TMA takes, but less than a lane's part of a dot."""
    compiled = compile_with(
        "persistent_matmul_epilogues",
        "scheme=auto",
        block_m=block_m,
        block_n=block_n,
        num_warps=num_warps,
        output="fp32",
    )
    assert compiled.kernel.asm["cubin"]
