"""Kernels of this project compiled for Hopper with and without epilogue-warp-specialize."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilepass.activate import enabled
from tilepass.core.anchor import Anchor
from tilepass.core.assembler import AssemblerLog
from tilepass.core.pass_base import Pass, PassContext, Target
from tilepass.core.registry import register
from tilepass.core.remarks import Remark
from tilepass.frontends.triton.targets import gpu_target
from tilepass.ir import engine
from tilepass.ir.engine import Module
from tilepass.kernels import get_workload
from tilepass.sim.compiler import Program
from tilepass.sim.equivalence import assert_equivalent
from tilepass.sim.inputs import Shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem

PASS = "epilogue-warp-specialize"
HOPPER = gpu_target(Target("cuda", 90))
_ARRAYS = 320
SMALL = {"block_m": "64", "block_n": "64", "block_k": "64", "num_warps": "4"}


@dataclass
class Compiled:
    """A compilation: the module before and after the pass, what ptxas said, the binary."""

    config: Any
    kernel: Any
    before: Module
    after: Module
    log: AssemblerLog
    remarks: list[Remark] = field(default_factory=list[Remark])


@register
class KeepModule(Pass):
    """Keeps the text of the module, and what ptxas says of the kernel."""

    name = "keep-module"
    anchor = Anchor.before("tritongpu-fuse-nested-loops")

    @dataclass(frozen=True)
    class Options:
        slot: str = "before"

    texts: dict[str, str] = {}  # noqa: RUF012
    logs: list[AssemblerLog] = []  # noqa: RUF012

    def run(self, module: Module, context: PassContext) -> None:
        self.texts[self.options.slot] = engine.print_generic(module)

    def assembled(self, log: AssemblerLog, context: PassContext) -> None:
        self.logs.append(log)


def compile_with(kernel: str, options: str, **texts: str) -> Compiled:
    """Compile a workload to a binary under the pass; `texts` are fields of its configuration."""
    workload = get_workload(kernel)
    config = workload.config_from(workload.default_shapes[0], texts)
    return _compiled(config, lambda: workload.compile(config, HOPPER), options)


def compile_source(source: Any, options: str, num_warps: int = 4, block: int = 64) -> Compiled:
    """Compile a kernel of ws_core_kernels, with tiles and steps of so many elements, under the
    pass."""
    triton: Any = importlib.import_module("triton")

    def compile_it() -> Any:
        return triton.compile(source, target=HOPPER, options={"num_warps": num_warps})

    return _compiled(_Tile(block, block, block), compile_it, options)


@dataclass(frozen=True)
class _Tile:
    """The tile of the kernels of ws_core_kernels."""

    block_m: int
    block_n: int
    block_k: int


def _compiled(config: Any, compile_it: Callable[[], Any], options: str) -> Compiled:
    pipeline = f"keep-module{{slot=before}},{PASS}{{{options}}},keep-module{{slot=after}}"
    with enabled(pipeline, remarks="none") as session:
        kernel = compile_it()
    before, after = (engine.parse(KeepModule.texts[slot]) for slot in ("before", "after"))
    return Compiled(config, kernel, before, after, KeepModule.logs[-1], session.remarks)


def shapes_of(config: Any, steps: int, rows: int, columns: int) -> Shapes:
    """Sizes of so many steps along K, and of so many tiles, the last row of them cut off; arrays
    are large enough for all."""
    sizes = {
        "M": config.block_m * rows - 16,
        "N": config.block_n * columns,
        "K": config.block_k * steps,
    }
    return Shapes(_ARRAYS, sizes)


def check_values(compiled: Compiled, steps: Sequence[int]) -> None:
    """Equal bits at each number of steps: 6 tiles on 2 programs, and 1 tile on 3.

    Raises NotEquivalentError or Fault.
    """
    one, other = Program(compiled.before), Program(compiled.after)
    for rows, columns, programs in ((3, 2, 2), (1, 1, 3)):
        shapes = [shapes_of(compiled.config, count, rows, columns) for count in steps]
        assert_equivalent(one, other, shapes=shapes, seeds=1, grid=(programs,))


def check_protocol(compiled: Compiled, steps: Iterable[int], schedules: int = 8) -> None:
    """No schedule breaks the protocol, for 1 tile and for 5 tiles of one program."""
    program = ProtocolProgram(compiled.after)
    for count in steps:
        for tiles in (1, 5):
            problem = Problem(shapes_of(compiled.config, count, tiles, 1))
            finding = find(program, problem, range(schedules))
            assert finding is None, f"{count} steps, {tiles} tiles: {finding}"
