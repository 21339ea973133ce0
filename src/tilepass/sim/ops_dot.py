"""Dots on registers (`tt.dot`, `tt.dot_scaled`), the unpacking of fp4, and `ttng`'s tensor memory
and matrix unit of Blackwell."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilepass.sim import matrix
from tilepass.sim.ops_ttg import TOKEN
from tilepass.sim.ops_ttng import acting
from tilepass.sim.poison import Poison, movement
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step, Suspending


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


def _set_tokens(frame: Frame, slots: tuple[int, ...]) -> None:
    for slot in slots:
        frame[slot] = TOKEN


@operation("ttng.tmem_load")
def tmem_load(site: Site) -> Suspending:
    buffer, (result, *others) = site.operands[0], site.results
    if any(type_.form != "other" for type_ in site.result_types[1:]):
        raise site.refuse("a reduction while loading")

    def act(frame: Frame) -> None:
        frame[result] = frame[0].effects.read(frame[buffer], "generic")
        _set_tokens(frame, tuple(others))

    return acting(act)


@operation("ttng.tmem_store")
def tmem_store(site: Site) -> Suspending:
    buffer, source, predicate = site.operands[0], site.operands[-2], site.operands[-1]
    results = site.results

    def act(frame: Frame) -> None:
        if frame[predicate]:
            frame[0].effects.write(frame[buffer], frame[source], "generic")
        _set_tokens(frame, results)

    return acting(act)


@operation("ttng.tmem_copy")
def tmem_copy(site: Site) -> Suspending:
    source, target = site.operands[:2]
    barrier = site.operands[2] if len(site.operands) > 2 else None
    if site.operand_types[0].shape != site.operand_types[1].shape:
        raise site.refuse("a copy that changes the shape")

    def act(frame: Frame) -> None:
        effects = frame[0].effects
        effects.write(frame[target], effects.read(frame[source], "async"), "async")
        if barrier is not None:
            effects.commit(frame[barrier])

    return acting(act)


@operation("ttng.tc_gen5_commit")
def commit(site: Site) -> Suspending:
    barrier = site.operands[0]
    has_groups = site.attribute("operandSegmentSizes") is not None
    predicate = site.optional(1) if has_groups else (*site.operands[1:], None)[0]
    return acting(lambda frame: frame[0].effects.commit(frame[barrier]), predicate)


@operation("ttng.tc_gen5_mma")
def mma(site: Site) -> Suspending:
    (a,), (b,), (d,) = site.groups[:3]
    use, predicate = site.groups[4][0], site.groups[5][0]
    element = site.type_of(d).of

    def product(frame: Frame, accumulator: Any) -> Any:
        effects = frame[0].effects
        left, right = effects.read(frame[a], "async"), effects.read(frame[b], "async")
        return matrix.dot(left, right, accumulator, matrix.TF32, element)

    return _accumulating(site, product, use, predicate, 6)


@operation("ttng.tc_gen5_mma_scaled")
def mma_scaled(site: Site) -> Suspending:
    (a,), (b,), (d,), _, (a_scale,), (b_scale,) = site.groups[:6]
    use, predicate = site.groups[6][0], site.groups[7][0]
    kinds = site.integer("a_type"), site.integer("b_type")
    check_kinds(site, kinds)
    element = site.type_of(d).of

    def product(frame: Frame, accumulator: Any) -> Any:
        effects = frame[0].effects
        left, right, *scales = (
            effects.read(frame[slot], "async") for slot in (a, b, a_scale, b_scale)
        )
        operands = [left, right, accumulator]
        return scaled_dot(operands, scales, kinds, [True, True], element)

    return _accumulating(site, product, use, predicate, 8)


def _accumulating(
    site: Site, product: Any, use: int, predicate: int, barrier_group: int
) -> Suspending:
    """D = product(D, or 0 if `use` is false), then an arrival at every barrier."""
    d, element = site.groups[2][0], site.type_of(site.groups[2][0]).of
    barriers = site.groups[barrier_group]
    predicates = site.groups[barrier_group + 1]
    results = site.results

    def act(frame: Frame) -> None:
        effects = frame[0].effects
        _set_tokens(frame, results)
        if not frame[predicate]:
            return
        view = frame[d]
        start = effects.read(view, "async") if frame[use] else np.zeros(view.shape, element.dtype)
        effects.write(view, product(frame, start), "async")
        for barrier, wanted in zip(barriers, predicates, strict=True):
            if frame[wanted]:
                effects.commit(frame[barrier])

    return acting(act)
