"""The table of operations that the protocol is made of, and what their step makers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilepass.ir import engine
from tilepass.ir.layouts import MemDescType
from tilepass.sim.elements import ValueType
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.poison import Poison
from tilepass.sim.protocol.events import Place
from tilepass.sim.protocol.recorder import UNKNOWN
from tilepass.sim.protocol.views import View
from tilepass.sim.site import Site
from tilepass.sim.state import Frame, Step

TENSOR = Poison(UNKNOWN)
"""Every tensor, and every scalar that comes from one."""


@dataclass(frozen=True)
class Unfinished:
    """The result of an asynchronous dot, the `serial`-th of its partition."""

    serial: int


def require_finished(frame: Frame, value: object) -> None:
    """Raise MemoryMisuse for the result of a dot that was not waited for."""
    if type(value) is Unfinished and value.serial > frame[0].finished:
        raise MemoryMisuse("it reads the result of a dot that was not waited for")


Make = Callable[[Site], Step]
MAKERS: dict[str, Make] = {}


def enter(*names: str) -> Callable[[Make], Make]:
    """Enter a step maker for the operations of these names."""

    def add(make: Make) -> Make:
        for name in names:
            MAKERS[name] = make
        return make

    return add


def place_of(site: Site) -> Place:
    """Where an operation is."""
    return Place(site.name, engine.location_of(site.operation))


def buffers(site: Site) -> list[int]:
    """The operands that are memory; how operands are grouped differs between Tritons."""
    pairs = zip(site.operands, site.operand_types, strict=True)
    return [slot for slot, type_ in pairs if type_.form == "memdesc"]


def memdesc_in(type_: ValueType) -> MemDescType:
    """The view of a buffer's type."""
    assert isinstance(type_.view, MemDescType)
    return type_.view


def condition(site: Site) -> int | None:
    """The last operand that is a scalar i1: the predicate."""
    pairs = zip(site.operands, site.operand_types, strict=True)
    found = [slot for slot, type_ in pairs if type_.text == "i1"]
    return found[-1] if found else None


def holds(frame: Frame, predicate: int | None) -> bool:
    """Whether a predicate that may be absent is true."""
    return predicate is None or bool(frame[predicate])


def view_in(frame: Frame, slot: int) -> View:
    """The view in a slot."""
    return frame[slot]
