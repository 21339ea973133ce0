"""For tests of passes: kernels from text or files, to be executed and compared on the CPU.

    assert_equivalent(program_of(before), program_of(after), shapes=["64", "64,K=100"])

`assert_equivalent` is in `tilepass.sim.equivalence`, and takes modules of the engine as well.
"""

from __future__ import annotations

from pathlib import Path

from tilepass.frontends.triton import bridge
from tilepass.sim.compiler import Program
from tilepass.sim.equivalence import NotEquivalentError, assert_equivalent

__all__ = ["NotEquivalentError", "assert_equivalent", "program_of"]


def program_of(source: str | Path, kernel: str | None = None) -> Program:
    """A kernel from MLIR text or a file of it, compiled for the simulator.

    Raises ParseError, UnsupportedOperationsError, and TilepassError where `kernel` is not there, or
    has to be named.
    """
    name = str(source) if isinstance(source, Path) else "<text>"
    text = source.read_text() if isinstance(source, Path) else source
    return Program(bridge.read_named(text, name), kernel)
