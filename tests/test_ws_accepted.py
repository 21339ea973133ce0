"""Kernels whose tile loops make descriptors or load scalars: the bits of the plain kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ws_core_support import Compiled, check_protocol, check_values, compile_source, shapes_of
from tests.ws_descriptor_kernels import described, using
from tests.ws_scalar_kernels import loading
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.ir.engine import operations
from tilepass.passes.triton.epilogue_warp_specialize.description import DESCRIPTOR_MAKERS
from tilepass.sim.equivalence import assert_equivalent

STEPS = (0, 1, 4)
COOPERATIVE, PING_PONG, SPLIT = (
    f"scheme={name},stages=3" for name in ("cooperative", "ping-pong", "split-consumer")
)


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def check(compiled: Compiled) -> None:
    """Values, also of programs without tiles, and the protocol."""
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, STEPS)
    no_tile = shapes_of(compiled.config, 1, 1, 0)
    assert_equivalent(compiled.before, compiled.after, shapes=[no_tile], seeds=1, grid=(2,))
    check_protocol(compiled, STEPS, 2)


@pytest.mark.parametrize(
    ("source", "scheme"),
    [
        (described(), COOPERATIVE),
        (described(), SPLIT),
        (described(a="tile", b="step"), PING_PONG),
        (described(c="from"), COOPERATIVE),
        (described(c="before"), SPLIT),
        (described(c="twice"), PING_PONG),
        (described(added="A"), COOPERATIVE),
        (described(a="step", added="A"), SPLIT),
        (described(added="C"), SPLIT),
        (described(added="C"), COOPERATIVE),
        (using("bound"), PING_PONG),
        (using("step"), COOPERATIVE),
        (using("carried"), SPLIT),
        (using("values"), SPLIT),
    ],
)
def test_descriptors_that_are_the_same_for_all_tiles(source: Any, scheme: str) -> None:
    """They are made before the tile loop: the C descriptor as torch inductor writes it, those
    of the main loop, of a residual tile, of a tile that is read and overwritten, and those whose
    operands the loop uses otherwise too."""
    compiled = compile_source(source, scheme)
    check(compiled)
    makers = [each for each in operations(compiled.after) if each.name in DESCRIPTOR_MAKERS]
    assert makers
    assert {each.parent.name for each in makers if each.parent} == {"tt.func"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (described(a="varies"), "varies from tile to tile"),
        (described(c="varies"), "varies from tile to tile"),
        (described(c="loaded"), "with tt.load, whose result may change"),
        (described(c="divided"), "with arith.divsi by a variable"),
        (described(c="under"), "scf.if in the epilogue is neither"),
    ],
)
def test_descriptors_that_vary(source: Any, reason: str) -> None:
    """They are refused, and what could be moved stays as well."""
    compiled = compile_source(source, "")
    assert engine.print_generic(compiled.before) == engine.print_generic(compiled.after)
    (remark,) = compiled.remarks
    assert reason in remark.message


def test_a_residual_tile_of_a_descriptor_that_varies() -> None:
    """The consumer makes it, and loads the tile whole."""
    check(compile_source(described(added="vary"), COOPERATIVE))
    with pytest.raises(PassFailure, match="varies from tile to tile"):
        compile_source(described(added="vary"), SPLIT)


@pytest.mark.parametrize(
    ("loads", "scheme"), [("rows", PING_PONG), ("rows", SPLIT), ("steps", COOPERATIVE)]
)
def test_scalars_that_are_loaded_under_a_condition(loads: str, scheme: str) -> None:
    """Every partition that needs them loads them."""
    check(compile_source(loading(loads), scheme))
