"""Every place in shared memory that TMA reads or writes is aligned, however small a piece is."""

from __future__ import annotations

import pytest

from tests.ws_split_kernels import Nest, specialized
from tilepass.core.errors import PassFailure
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem

_PLANS = [
    "scheme=cooperative,epilogue-subtile=1,late-subtiles=0",
    "scheme=cooperative,epilogue-subtile=4",
    "scheme=ping-pong,epilogue-subtile=1,c-buffers=2",
    "scheme=ping-pong,epilogue-subtile=2",
    "scheme=ping-pong,epilogue-subtile=4,c-buffers=4",
    "scheme=split-consumer,epilogue-subtile=4",
]


@pytest.mark.parametrize("element", ["f8E4M3FN", "bf16", "f32"])
@pytest.mark.parametrize("columns", [32, 64, 128])
def test_rows_of_every_width(columns: int, element: str) -> None:
    nest = Nest("row", m=128, n=columns, row=element)
    built = 0
    for plan in _PLANS:
        try:
            module = specialized(nest, plan)
        except PassFailure:
            continue
        built += 1
        shapes = parse_shapes(nest.sizes(1))
        finding = find(ProtocolProgram(module), Problem(shapes), range(1))
        assert finding is None, f"{plan}: {finding}"
    # TMA moves rows of 16 bytes or more.
    too_short = element == "f8E4M3FN" and columns == 32
    assert built == len(_PLANS) - (sum("=4" in plan for plan in _PLANS) if too_short else 0)
