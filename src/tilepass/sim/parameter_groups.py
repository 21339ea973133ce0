"""The parameters of a kernel as its author sees them: a tensor descriptor is one, whatever Triton
passes along with it or makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.sim.compiler import Parameter
from tilepass.sim.elements import Element, element_of


@dataclass(frozen=True)
class Group:
    """A parameter with those that belong to it.

    `rank` is that of a host descriptor, None for anything else. Behind a descriptor come its
    `sizes` and `strides`. Where triton-rewrite-tensor-descriptor-to-pointer has made a pointer of
    it, `replaced` comes between: i64 sizes, i64 strides, and an i1 or two: whether to read NaN
    outside of the array, and whether to round to tf32 (since Triton 3.9).
    """

    parameter: Parameter
    rank: int | None = None
    replaced: tuple[Parameter, ...] = ()
    sizes: tuple[Parameter, ...] = ()
    strides: tuple[Parameter, ...] = ()

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def element(self) -> Element:
        """The element type of a pointer's or descriptor's array."""
        of = self.parameter.type.of
        return of if of.pointee is None else element_of(of.pointee)


def grouped(parameters: Sequence[Parameter]) -> list[Group]:
    """The parameters as the kernel's author sees them."""
    groups: list[Group] = []
    waiting = list(parameters)
    while waiting:
        first = waiting.pop(0)
        if first.type.form == "descriptor":
            rank, replaced = len(first.type.shape), ()
        else:
            rank, replaced = _replaced(first, waiting)
        del waiting[: len(replaced)]
        if rank is None or _types(waiting[: 2 * rank]) != ["i32"] * rank + ["i64"] * rank:
            groups.append(Group(first, rank, replaced))
            continue
        # Triton passes a host descriptor's sizes and strides behind it.
        sizes, strides = tuple(waiting[:rank]), tuple(waiting[rank : 2 * rank])
        del waiting[: 2 * rank]
        groups.append(Group(first, rank, replaced, sizes, strides))
    return groups


def _replaced(
    first: Parameter, behind: Sequence[Parameter]
) -> tuple[int | None, tuple[Parameter, ...]]:
    """The rank of the descriptor that this pointer was, and what else was made of it."""
    if first.type.form != "scalar" or first.type.of.kind != "pointer":
        return None, ()
    own = [each for each in behind if each.name.startswith(f"{first.name}.")]
    types = _types(own)
    count = next((at for at, text in enumerate(types) if text != "i64"), 0)
    flags = 2 if types[count + 1 : count + 2] == ["i1"] else 1
    if count < 2 or count % 2 or types[count] != "i1" or own[0] is not behind[0]:
        return None, ()
    return count // 2, tuple(own[: count + flags])


def _types(parameters: Sequence[Parameter]) -> list[str]:
    return [parameter.type.text for parameter in parameters]
