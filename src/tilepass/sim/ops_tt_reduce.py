"""`tt`: reductions, scans and the other operations that run a region on elements.

A reduction combines neighbours, then the results, and so on: a tree whose shape depends on the
length alone, with every left operand before its right one. A scan goes from one end to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilepass.sim.poison import PartialPoison, Poison, mask_of, require_defined, values_of
from tilepass.sim.region import Body
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step

Arrays = list[Any]


def _at(axis: int, what: slice | int) -> tuple[Any, ...]:
    return (slice(None),) * axis + (what,)


def _poison_along(frame: Frame, operands: Sequence[int]) -> tuple[Poison | None, Any, str]:
    """(poison of a whole operand, which elements are poison in any, why)."""
    values = [frame[slot] for slot in operands]
    for value in values:
        if type(value) is Poison:
            return value, None, value.cause
    masks = [value for value in values if type(value) is PartialPoison]
    if not masks:
        return None, None, ""
    mask = np.logical_or.reduce([mask_of(value) for value in masks])
    return None, mask, masks[0].cause


@operation("tt.reduce")
def reduce(site: Site) -> Step:
    axis, body = site.integer("axis"), site.body(0, lifted=True)
    operands, results = site.operands, site.results
    types = site.result_types

    def step(frame: Frame) -> None:
        whole, mask, cause = _poison_along(frame, operands)
        if whole is not None:
            for slot in results:
                frame[slot] = whole
            return
        found = _tree(frame, body, [values_of(frame[slot]) for slot in operands], axis)
        wrong = None if mask is None else mask.any(axis)
        for slot, value, type_ in zip(results, found, types, strict=True):
            value = value.astype(type_.of.dtype, copy=False)
            if type_.form == "scalar":
                frame[slot] = (
                    Poison(cause)
                    if wrong
                    else type_.of.scalar(
                        value[()].item() if type_.of.kind != "float" else value[()]
                    )
                )
            else:
                frame[slot] = value if wrong is None else PartialPoison(value, wrong, cause)

    return step


def _tree(frame: Frame, body: Body, values: Arrays, axis: int) -> Arrays:
    while (length := values[0].shape[axis]) > 1:
        even, odd = slice(0, length // 2 * 2, 2), slice(1, None, 2)
        pairs = [value[_at(axis, even)] for value in values]
        pairs += [value[_at(axis, odd)] for value in values]
        combined = list(body.enter(frame, pairs))
        if length % 2:
            rest = [value[_at(axis, slice(length - 1, None))] for value in values]
            both = zip(combined, rest, strict=True)
            combined = [np.concatenate(parts, axis) for parts in both]
        values = combined
    return [value[_at(axis, 0)] for value in values]


@operation("tt.scan")
def scan(site: Site) -> Step:
    axis, backward = site.integer("axis"), site.flag("reverse")
    body = site.body(0, lifted=True)
    operands, results, types = site.operands, site.results, site.result_types

    def step(frame: Frame) -> None:
        whole, mask, cause = _poison_along(frame, operands)
        if whole is not None:
            for slot in results:
                frame[slot] = whole
            return
        sources = [values_of(frame[slot]) for slot in operands]
        found = _prefixes(frame, body, sources, axis, backward)
        for slot, value, type_ in zip(results, found, types, strict=True):
            value = value.astype(type_.of.dtype, copy=False)
            frame[slot] = (
                value
                if mask is None
                else PartialPoison(
                    value,
                    np.logical_or.accumulate(mask, axis)
                    if not backward
                    else np.flip(np.logical_or.accumulate(np.flip(mask, axis), axis), axis),
                    cause,
                )
            )

    return step


def _prefixes(frame: Frame, body: Body, sources: Arrays, axis: int, backward: bool) -> Arrays:
    length = sources[0].shape[axis]
    order = range(length)[::-1] if backward else range(length)
    carried: Arrays = []
    found = [np.empty_like(source) for source in sources]
    for index in order:
        new = [source[_at(axis, index)] for source in sources]
        carried = list(body.enter(frame, [*carried, *new])) if carried else new
        for result, value in zip(found, carried, strict=True):
            result[_at(axis, index)] = value
    return found


@operation("tt.map_elementwise")
def map_elementwise(site: Site) -> Step:
    """Runs the region element by element: it may branch."""
    if site.integer("pack", 1) != 1:
        raise site.refuse("with pack > 1")
    body, operands, results = site.body(0), site.operands, site.results
    elements = [type_.of for type_ in site.operand_types]
    outputs = site.result_types

    def step(frame: Frame) -> None:
        sources = [require_defined(frame[slot], "an operand") for slot in operands]
        found = [np.empty(type_.shape, type_.of.dtype) for type_ in outputs]
        for index in np.ndindex(outputs[0].shape):
            given = [
                source[index] if element.kind == "float" else source[index].item()
                for source, element in zip(sources, elements, strict=True)
            ]
            for result, value in zip(found, body.enter(frame, given), strict=True):
                result[index] = value
        for slot, value in zip(results, found, strict=True):
            frame[slot] = value

    return step


@operation("tt.histogram")
def histogram(site: Site) -> Step:
    """Counts of the values 0 to n - 1; what is outside is undefined in Triton and reported."""
    bins, dtype = site.result_type.shape[0], site.element.dtype
    source, *masks = site.operands
    result = site.result

    def step(frame: Frame) -> None:
        mask = require_defined(frame[masks[0]], "the mask") if masks else True
        values = require_defined(frame[source], "an operand of a histogram", mask)
        chosen: Any = values if mask is True else values[mask]
        outside = (chosen < 0) | (chosen >= bins)
        if outside.any():
            frame[result] = Poison("a histogram of a value outside its bins")
            return
        frame[result] = np.bincount(chosen.ravel(), minlength=bins).astype(dtype)

    return step
