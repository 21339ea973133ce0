"""Compiling a module for recording, and recording it: scalars as the value interpreter computes
them, tensors without contents, everything asynchronous by `steps`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

from tilepass.analysis.dot_registers import find_overwrites
from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import ParseError
from tilepass.ir import engine
from tilepass.sim.compiler import Function, FunctionCompiler, Program
from tilepass.sim.effects import Effects
from tilepass.sim.faults import StepLimit, UndefinedBehaviour, raise_blaming
from tilepass.sim.protocol.events import Event, Memory, Place, Recording, Region, Thread
from tilepass.sim.protocol.problems import Problem, bind_values
from tilepass.sim.protocol.recorder import STEP_LIMIT, UNKNOWN, CannotFollow, Recorder, TooLong
from tilepass.sim.protocol.steps import make_step, writing_registers
from tilepass.sim.site import CannotSimulate, Site
from tilepass.sim.state import Step, Suspending

_ALLOCATION = re.compile(r"^\s*(%[\w$.-]+) = ttg\.local_alloc\b")


class ProtocolProgram(Program):
    """A module and one of its functions, compiled for recording. Raises as Program does,
    and CannotFollow for a cluster of several CTAs.

    `text` is what the module was parsed from and `file` its name, to call allocations as it does.
    `registers`: also report registers that are written while a dot of the iteration before may read
    them. PTX forbids that; newer ptxas take care of it themselves.

    `fences_to_come`: the module is from before triton-nvidia-gpu-fence-insertion, which comes after
    the lowering of descriptors; fences that it will insert are not asked for.
    """

    def __init__(
        self,
        module: engine.Module,
        kernel: str | None = None,
        *,
        text: str = "",
        file: str = "",
        registers: bool = False,
    ) -> None:
        self.registers = registers
        self.fences_to_come = _is_before_fences(module)
        _require_one_cta(module)
        self._allocations = {
            number: match[1]
            for number, line in enumerate(text.split("\n"), 1)
            if (match := _ALLOCATION.match(line))
        }
        self._file = file
        super().__init__(module, kernel)

    def name_of(self, allocation: Place) -> str | None:
        """The name of what an operation allocates, if the text gives its own locations."""
        where = allocation.location
        if where is None or where.file != self._file:
            return None
        return self._allocations.get(where.line)

    def _compiler(self, function: Function) -> FunctionCompiler:
        return _Compiler(self, function)


def _is_before_fences(module: engine.Module) -> bool:
    names = engine.operation_names(module)
    return "ttng.warp_group_dot" in names and any(n.startswith("tt.descriptor_") for n in names)


def _require_one_cta(module: engine.Module) -> None:
    count: Any = module.operation.attributes.get("ttg.num-ctas")
    if count is not None and count.value != 1:
        raise CannotFollow(f"clusters of {count.value} CTAs, whose barriers other CTAs may use")


class _Compiler(FunctionCompiler):
    program: ProtocolProgram

    def __init__(self, program: ProtocolProgram, function: Function) -> None:
        super().__init__(program, function)
        self._writers = set[engine.Operation]()

    def compile(self, operation: engine.Operation, lifted: bool) -> None:
        """Set the function's body."""
        if self.program.registers:
            self._writers = {found.writer for found in find_overwrites(operation)}
        super().compile(operation, lifted)

    def _step(self, operation: engine.Operation, lifted: bool) -> Step | Suspending:
        try:
            step = make_step(Site(self, operation, lifted), self.program.name_of)
            return writing_registers(step) if operation in self._writers else step
        except (CannotSimulate, ParseError) as error:
            location = engine.location_of(operation)
            self.program.unsupported.append(
                Diagnostic("error", f"{operation.name} cannot be followed: {error}", location)
            )
            return lambda _: None
        except Exception as error:
            raise_blaming(error, operation)


def record(program: ProtocolProgram, problem: Problem) -> Recording:
    """What one program of a grid does.

    Raises CannotFollow, OptionError for shapes that do not fit, and Fault for what is wrong
    whatever the schedule.
    """
    values, memory = bind_values(program, problem.shapes)
    recorder = Recorder(memory, Effects(), problem.program, problem.grid, STEP_LIMIT)
    frame = program.entry.frame(recorder)
    try:
        program.entry.body.enter(frame, values)
    except StepLimit as fault:
        raise TooLong(str(fault)) from fault
    except UndefinedBehaviour as fault:
        if UNKNOWN in fault.message:
            place = f"{fault.operation} at {fault.location}" if fault.location else fault.operation
            raise CannotFollow(
                f"{place} depends on what memory or a tensor holds, which is not followed"
            ) from fault
        raise
    regions, barriers = number_cells(recorder.threads)
    memories = list(recorder.memories.values())
    return Recording(recorder.threads, regions, barriers, memories, program.fences_to_come)


def number_cells(threads: Iterable[Thread]) -> tuple[list[Region], list[Region]]:
    """Set `cells` and `number` of all events; returns (a region for each cell, the barriers)."""
    events = [event for thread in threads for event in thread.events]
    numbering = _Numbering(events)
    barriers: dict[Region, int] = {}
    for event in events:
        event.cells = tuple(cell for region in event.regions for cell in numbering.of(region))
        if event.barrier is not None:
            event.number = barriers.setdefault(event.barrier, len(barriers))
    return numbering.regions, list(barriers)


class _Numbering:
    def __init__(self, events: Iterable[Event]) -> None:
        self.regions: list[Region] = []
        self._cuts: dict[Memory, list[list[int]]] = {}
        self._numbers: dict[Region, int] = {}
        self._known: dict[Region, tuple[int, ...]] = {}
        used = {region for event in events for region in event.regions}
        for region in used:
            axes = self._cuts.setdefault(region.memory, [[] for _ in region.box])
            for cuts, span in zip(axes, region.box, strict=True):
                cuts.extend(span)
        for axes in self._cuts.values():
            axes[:] = [sorted(set(cuts)) for cuts in axes]

    def of(self, region: Region) -> tuple[int, ...]:
        """The numbers of the cells that a region consists of."""
        if region not in self._known:
            spans = [
                [pair for pair in itertools.pairwise(cuts) if first <= pair[0] and pair[1] <= end]
                for cuts, (first, end) in zip(self._cuts[region.memory], region.box, strict=True)
            ]
            parts = [Region(region.memory, tuple(box)) for box in itertools.product(*spans)]
            self._known[region] = tuple(self._number(part) for part in parts)
        return self._known[region]

    def _number(self, part: Region) -> int:
        if part not in self._numbers:
            self._numbers[part] = len(self.regions)
            self.regions.append(part)
        return self._numbers[part]
