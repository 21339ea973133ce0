"""Whether a trip after every pass of Triton's pipelines leaves the generated code as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilepass.activate import enabled
from tilepass.core.pass_base import PassContext
from tilepass.frontends.observing import Compilation, Origin

from .compiling import run_stages
from .entries import Entry
from .round_trip import first_difference

_ASSEMBLY = {"cuda": "ptx", "hip": "amdgcn"}


@dataclass(frozen=True)
class Comparison:
    """The assembly of plain Triton and that with `trips` trips between passes."""

    entry: Entry
    plain: str
    with_trips: str
    trips: int

    @property
    def identical(self) -> bool:
        """Whether both are the same, byte for byte."""
        return self.plain == self.with_trips

    def __str__(self) -> str:
        difference = "identical"
        if not self.identical:
            difference = "\n" + first_difference(self.plain, self.with_trips)
        return f"{self.entry.name}, {self.trips} trips: {difference}"


def compare(entry: Entry) -> Comparison:
    """Compile an entry to assembly without and with a trip after every pass."""
    plain, counter = _assembly(entry), _Counter()
    with enabled("test-round-trip@after:*", observers=[counter]):
        return Comparison(entry, plain, _assembly(entry), counter.trips)


class _Counter:
    """An observer that counts the runs of Python passes."""

    def __init__(self) -> None:
        self.trips = 0

    def begin(self, compilation: Compilation, source: Callable[[], str]) -> None: ...

    def before_pass(self, context: PassContext) -> None:
        self.trips += 1

    def after_pass(
        self,
        stage: str,
        index: int,
        pass_text: str,
        origin: Origin,
        module_text: Callable[[], str],
    ) -> None: ...

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None: ...


def _assembly(entry: Entry) -> str:
    *_, (_, assembly) = run_stages(entry, _ASSEMBLY[entry.target.backend])
    return assembly
