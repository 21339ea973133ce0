"""Static figures of a CuTe module, from a copy compiled to a binary (`PassContext.trial`)."""

from __future__ import annotations

import re
from collections.abc import Callable

from tilepass.binary.sass import count_instructions, resources
from tilepass.binary.tools import as_file, find_tools, run_tool
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import BinaryFigures, Target
from tilepass.frontends.cute.lowering import CuteBinary, compile_copy
from tilepass.ir.engine import Module


def make_trial(pipeline: str, target: Target) -> Callable[[Module], BinaryFigures]:
    """The function that compiles copies of modules with a pipeline of the CuTe compiler.

    It raises TilepassError where the compiler, or a tool of Triton's wheel, fails.
    """

    def trial(module: Module) -> BinaryFigures:
        return binary_figures(compile_copy(module, pipeline), target)

    return trial


def binary_figures(binary: CuteBinary, target: Target) -> BinaryFigures:
    """The figures of a compiled module. Raises TilepassError."""
    if not isinstance(target.arch, int):
        raise TilepassError(f"{target} is not a CUDA target")
    tools = find_tools(target.arch)
    found = resources(binary.cubin, tools)
    if not found:
        raise TilepassError("cuobjdump finds no kernel in the compiled module")
    # Of the kernel that has most of each.
    registers, stack, shared = map(max, zip(*found.values(), strict=True))
    with as_file(binary.cubin, ".cubin") as path:
        sass = run_tool([tools.nvdisasm, "--print-code", "--print-instruction-encoding", path])
    counts = count_instructions(sass.stdout, nvidia=True)
    return BinaryFigures(
        registers=registers,
        stack_bytes=stack,
        shared_bytes=shared,
        local_loads=counts.get("LDL", 0),
        local_stores=counts.get("STL", 0),
        mma_count=len(re.findall(r"\bmma\.sync\b", binary.ptx)),
        sass=sass.stdout,
        ptx=binary.ptx,
    )
