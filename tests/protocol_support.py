"""What the tests of the protocol share: warp-specialized kernels, sizes, and tables of mutants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.protocol_mutants import Mutant, mutants
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.ir.engine import Module
from tilepass.sim.inputs import Shapes
from tilepass.sim.protocol.check import Finding, find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem

INPUTS = Path(__file__).resolve().parents[1] / "lit_tests" / "check" / "Inputs"
SCHEMES = {"A": "ws-store-warp", "A0": "ws-load-warp", "B": "ws-ping-pong"}
STAGES = 3
# Trips of the loop over K; several tiles each.
TRIPS = (1, 2, STAGES, STAGES + 1)
TILES = 5
_BLOCK, _BLOCK_K = 128, 64


def load(scheme: str) -> Module:
    """A kernel of lit_tests/check/Inputs, spelled for the installed Triton."""
    path = INPUTS / f"{SCHEMES[scheme]}.ttgir"
    text = path.read_text()
    if triton_version().version >= (3, 8):
        text = text.replace("tensordesc<tensor<", "tensordesc<").replace("#shared>>", "#shared>")
    return module_of(text, path.name)


def module_of(text: str, name: str = "kernel.ttgir") -> Module:
    """A module of the engine from TTGIR."""
    return bridge.to_engine(bridge.load(text, name))


def problem(trips: int, tiles: int = TILES) -> Problem:
    """So many trips over K for so many tiles of one program."""
    sizes = {"M": _BLOCK * tiles, "N": _BLOCK, "K": _BLOCK_K * trips}
    return Problem(Shapes(64, sizes))


@dataclass(frozen=True)
class Row:
    """What was found in a mutant, for each size; None where nothing was."""

    mutant: Mutant
    findings: Sequence[Finding | None]

    @property
    def reported(self) -> bool:
        return any(self.findings)


def rows(module: Module, trips: Iterable[int], seeds: int) -> Iterator[Row]:
    """Each mutant of a module at these sizes."""
    sizes = [problem(each) for each in trips]
    for mutant in mutants(module):
        program = ProtocolProgram(mutant.apply(module))
        yield Row(mutant, [find(program, each, range(seeds)) for each in sizes])
