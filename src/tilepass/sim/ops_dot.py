"""Dots on registers: `tt.dot`, `tt.dot_scaled`, and the unpacking of fp4."""

from __future__ import annotations

from typing import Any

from tilepass.sim import matrix
from tilepass.sim.poison import Poison, movement
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step


@operation("tt.dot")
def dot(site: Site) -> Step:
    precision, element = site.integer("inputPrecision", 2), site.element
    return site.compute(lambda a, b, acc: matrix.dot(a, b, acc, precision, element))


@operation("tt.dot_scaled")
def dot_scaled(site: Site) -> Step:
    kinds = site.integer("a_elem_type"), site.integer("b_elem_type")
    check_kinds(site, kinds)
    (a,), (b,), (accumulator,) = site.groups[:3]
    a_scale, b_scale = site.optional(3), site.optional(4)
    packed = [site.attribute(name) is None or site.flag(name) for name in _PACKED]
    element, result = site.element, site.result

    def step(frame: Frame) -> None:
        operands = [frame[slot] for slot in (a, b, accumulator)]
        scales = [None if slot is None else frame[slot] for slot in (a_scale, b_scale)]
        frame[result] = scaled_dot(operands, scales, kinds, packed, element)

    return step


_PACKED = ("lhs_k_pack", "rhs_k_pack")


def check_kinds(site: Site, kinds: tuple[int, int]) -> None:
    """Refuse formats that cannot be decoded."""
    if not all(map(matrix.known_scaled_kind, kinds)):
        raise site.refuse("operands in a 6-bit format")


def scaled_dot(
    operands: list[Any], scales: list[Any], kinds: tuple[int, int], packed: list[bool], element: Any
) -> Any:
    """`acc + (a * a_scale) @ (b * b_scale)`."""
    a, b, accumulator = operands
    for value in (*operands, *scales):
        if type(value) is Poison:
            return value
    left = matrix.scaled_operand(a, scales[0], kinds[0], 1, packed[0])
    right = matrix.scaled_operand(b, scales[1], kinds[1], 0, packed[1])
    return matrix.dot(left, right, accumulator, -1, element)


@operation("ttg.fp4_to_fp")
def fp4_to_fp(site: Site) -> Step:
    axis, dtype = site.integer("axis"), site.element.dtype
    return site.compute(movement(lambda codes: matrix.unpack_e2m1(codes, axis).astype(dtype)))
