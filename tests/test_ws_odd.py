"""Kernels that are legal and unusual: what is loaded or summed elsewhere, other numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ws_core_kernels as kernels
from tests.protocol_support import module_of
from tests.ws_core_support import check_protocol, check_values, compile_source
from tests.ws_split_kernels import Nest, run_pass
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.sim.equivalence import assert_equivalent

SPLIT = "scheme=split-consumer,stages=3,epilogue-subtile=2,late-subtiles=1"
COOPERATIVE = "scheme=cooperative,stages=3,epilogue-subtile=2,late-subtiles=1"

Changes = tuple[tuple[str, str], ...]

_LOOP = "  scf.for %t = "
_START = "iter_args(%s = %zero)"


def _changed(nest: Nest, changes: Changes) -> str:
    text = nest.text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


SCALED: Changes = (
    (
        "%one = arith.constant dense<1.0> : tensor<128x64xf32, #mma>",
        """%sp = tt.addptr %bias, %t : !tt.ptr<bf16>, i32
  %sv = tt.load %sp : !tt.ptr<bf16>
  %sf = arith.extf %sv : bf16 to f32
  %one = tt.splat %sf : f32 -> tensor<128x64xf32, #mma>""",
    ),
)
"""A factor for each tile, loaded: `bias` has as many elements as there are tiles."""


@pytest.mark.parametrize("options", [SPLIT, COOPERATIVE])
def test_a_program_without_tiles_loads_nothing(options: str) -> None:
    """The third program's tile is beyond the array of factors."""
    nest = Nest()
    text = _changed(nest, SCALED)
    after = run_pass(module_of(text), f"epilogue-warp-specialize{{{options}}}")
    for tiles, grid in ((2, 3), (2, 1)):
        sizes = nest.sizes(2, tiles).replace(f"bias={128 * tiles}x56", f"bias={tiles}")
        assert_equivalent(module_of(text), after, shapes=[sizes], seeds=1, grid=(grid,))


@pytest.mark.parametrize("options", [SPLIT, COOPERATIVE])
def test_a_row_loaded_in_front_of_the_tile_loop(options: str) -> None:
    """It is loaded for each tile; nothing is left of it in front, for another number of warps."""
    nest = Nest("bias")
    text = nest.text()
    start, end = text.index("  %r = tt.make_range"), text.index("  %b1 = ttg.convert_layout")
    row = text[start:end].replace("%column", "%c0")
    text = (text[:start] + text[end:]).replace(_LOOP, row + _LOOP)
    after = run_pass(module_of(text), f"epilogue-warp-specialize{{{options}}}")
    sizes = [nest.sizes(steps, tiles=3) for steps in (0, 2)]
    assert_equivalent(module_of(text), after, shapes=sizes, seeds=1, grid=(2,))


LOADED_START: Changes = (
    (
        "  %acc = scf.for",
        """  %i0 = tt.descriptor_load %r_desc[%row, %column] : [c] -> tensor<128x64xbf16, #tile>
  %i1 = ttg.convert_layout %i0 : tensor<128x64xbf16, #tile> -> tensor<128x64xbf16, #mma>
  %i2 = arith.extf %i1 : tensor<128x64xbf16, #mma> to tensor<128x64xf32, #mma>
  %acc = scf.for""",
    ),
    (_START, "iter_args(%s = %i2)"),
)

POINTERS = """  %h0 = arith.constant dense<0> : tensor<128x64xi32, #mma>
  %h1 = tt.splat %bias : !tt.ptr<bf16> -> tensor<128x64x!tt.ptr<bf16>, #mma>
  %h2 = tt.addptr %h1, %h0 : tensor<128x64x!tt.ptr<bf16>, #mma>, tensor<128x64xi32, #mma>
  %h3 = tt.load %h2 : tensor<128x64x!tt.ptr<bf16>, #mma>
  %h4 = arith.extf %h3 : tensor<128x64xbf16, #mma> to tensor<128x64xf32, #mma>
"""
STORED_THERE: Changes = (
    (_LOOP, POINTERS + _LOOP),
    (
        "  tt.store %pp, %flat, %mk : tensor<128x64x!tt.ptr<bf16>, #tile>",
        "  tt.store %h2, %out : tensor<128x64x!tt.ptr<bf16>, #mma>",
    ),
)
STARTS_FROM_IT: Changes = (*STORED_THERE, (_START, "iter_args(%s = %h4)"))
ADDS_IT: Changes = (
    *STORED_THERE,
    (
        "  %out = arith.truncf %acc",
        "  %accs = arith.addf %acc, %h4 : tensor<128x64xf32, #mma>\n  %out = arith.truncf %accs",
    ),
)


@pytest.mark.parametrize(
    ("nest", "changes", "reason"),
    [
        (Nest(), LOADED_START, "the accumulator starts from a tile"),
        (Nest("pointers"), STARTS_FROM_IT, "loaded before it, once for all tiles"),
        (Nest("pointers"), ADDS_IT, "loaded before it, once for all tiles"),
    ],
    ids=("tile", "start", "sum"),
)
def test_refused(nest: Nest, changes: Changes, reason: str) -> None:
    """What a consumer would load again for each tile, or by parts with a descriptor for all."""
    described = nest.text().split("%c_desc: ")[1].split(" loc(")[0]
    changes = tuple((old, new.replace("[c]", described)) for old, new in changes)
    text = _changed(nest, changes)
    with pytest.raises(PassFailure, match=reason):
        run_pass(module_of(text), "epilogue-warp-specialize{scheme=split-consumer}")


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("no_cache")
def test_integers() -> None:
    """int8 operands, int32 sums, parts of them late."""
    source = kernels.source(kernels.narrow, ("i8", "i8", "i32"), EXACT=0, INTEGERS=True)
    compiled = compile_source(source, COOPERATIVE)
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, (0, 3))
    check_protocol(compiled, (0, 3), 2)


@pytest.mark.usefixtures("no_cache")
@pytest.mark.parametrize("exact", [32, 64])
def test_partial_sums_are_refused(exact: int) -> None:
    """Triton makes them up to a limit that is the step itself."""
    types = ("fp8e4nv", "fp8e4nv", "fp32")
    source = kernels.source(kernels.narrow, types, EXACT=exact, INTEGERS=False)
    with pytest.raises(PassFailure, match="is not beyond the step of 64"):
        compile_source(source, COOPERATIVE)
