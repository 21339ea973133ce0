"""`tt`: assertions, output, assumptions, and inline assembly."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilepass.sim.faults import AssertionFailed
from tilepass.sim.inline_assembly import compile_assembly
from tilepass.sim.poison import require_defined
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step


@operation("tt.assert")
def assertion(site: Site) -> Step:
    (condition,), message = site.operands, site.text("message")

    def step(frame: Frame) -> None:
        if not np.all(require_defined(frame[condition], "an asserted condition")):
            raise AssertionFailed(f"assertion failed: {message}")

    return step


@operation("llvm.intr.assume")
def assume(site: Site) -> Step:
    condition = site.operands[0]

    def step(frame: Frame) -> None:
        if not require_defined(frame[condition], "an assumed condition"):
            raise AssertionFailed("an assumption does not hold")

    return step


@operation("tt.print")
def print_(site: Site) -> Step:
    prefix, operands = site.text("prefix"), site.operands

    def step(frame: Frame) -> None:
        values: list[Any] = [frame[slot] for slot in operands]
        frame[0].printed.append(prefix + ", ".join(map(str, values)))

    return step


@operation("gpu.barrier", "ttg.barrier", "tt.grid_dependency_wait",
           "tt.grid_dependency_launch_dependents", "amdg.cond_barrier")  # fmt: skip
def barrier(site: Site) -> Step:
    """The threads of a partition run in step: nothing to wait for."""
    return lambda _: None


@operation("tt.elementwise_inline_asm")
def inline_assembly(site: Site) -> Step:
    """A few instructions on 32-bit words; refused if the text holds any other."""
    packed = site.integer("packed_element", 1)
    if packed != 1:
        raise site.refuse(f"inline assembly on {packed} packed elements")
    if any(type_.of.size not in (2, 4) for type_ in (*site.operand_types, *site.result_types)):
        raise site.refuse("inline assembly on elements that are not 16- or 32-bit words")
    dtypes = [type_.of.dtype for type_ in site.result_types]
    run = compile_assembly(site.text("asm_string"), len(site.operands), dtypes)
    operands, results = site.operands, site.results

    def step(frame: Frame) -> None:
        given = [require_defined(frame[slot], "an operand of assembly") for slot in operands]
        for slot, value in zip(results, run(given), strict=True):
            frame[slot] = value

    return step
