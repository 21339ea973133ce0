"""`arith`: constants, integer and float arithmetic, comparisons, conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tilepass.ir.engine import ir
from tilepass.sim import casts, extrema, integers
from tilepass.sim.elements import Element
from tilepass.sim.integers import Binary
from tilepass.sim.poison import (
    PartialPoison,
    Poison,
    elementwise,
    mask_of,
    values_of,
    where,
    with_poison,
)
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step


@operation("arith.constant")
def constant(site: Site) -> Step:
    value, result = _constant_value(site), site.result

    def step(frame: Frame) -> None:
        frame[result] = value

    return step


def _constant_value(site: Site) -> Any:
    attribute: Any = site.attribute("value")
    element = site.element
    if isinstance(attribute, ir.DenseElementsAttr):
        shape = site.result_type.shape
        if attribute.is_splat:
            splat: Any = attribute.get_splat_value()
            return np.full(shape, element.scalar(splat.value), element.dtype)
        listed: Any = attribute
        numbers = [element.scalar(listed[index]) for index in range(len(listed))]
        return np.array(numbers, element.dtype).reshape(shape)
    value = element.scalar(attribute.value)
    return element.dtype.type(value) if site.lifted else value


@operation("ub.poison")
def poison(site: Site) -> Step:
    value, result = Poison("ub.poison"), site.result

    def step(frame: Frame) -> None:
        frame[result] = value

    return step


_WRAPPING: dict[str, tuple[Callable[[int], Binary], Callable[[Any, Any], Any]]] = {
    "arith.addi": (integers.adding, operator.add),
    "arith.subi": (integers.subtracting, operator.sub),
    "arith.muli": (integers.multiplying, operator.mul),
}
_ON_BITS = {"arith.addi": np.not_equal, "arith.subi": np.not_equal, "arith.muli": np.logical_and}


@operation(*_WRAPPING)
def wrapping(site: Site) -> Step:
    make_scalar, exact = _WRAPPING[site.name]
    flags, element = site.text("overflowFlags"), site.element
    if element.bits == 1:
        bits = _ON_BITS[site.name]
        return site.compute(elementwise(lambda a, b: _same_form(bits(a, b), a)))
    if "nsw" in flags or "nuw" in flags:
        check = integers.checking_overflow(element, exact, "nsw" in flags, "nuw" in flags)
        return site.compute(elementwise(check))
    if site.arrays(site.result_type):
        return site.compute(elementwise(exact))
    # Poison does arithmetic itself: the common case needs no test for it.
    return site.compute(make_scalar(element.bits))


def _same_form(result: Any, like: Any) -> Any:
    return bool(result) if isinstance(like, bool) else result


_BITWISE: dict[str, Binary] = {
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}


@operation(*_BITWISE)
def bitwise(site: Site) -> Step:
    function = _BITWISE[site.name]
    return site.compute(elementwise(function) if site.arrays(site.result_type) else function)


@operation("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi",
           "arith.ceildivui", "arith.floordivsi")  # fmt: skip
def division(site: Site) -> Step:
    name = site.name.removeprefix("arith.")
    return site.compute(
        elementwise(integers.dividing(site.element, _DIVISIONS[name], name.endswith("si")))
    )


_DIVISIONS: dict[str, Binary] = {
    "divsi": lambda a, b: integers.truncated_division(a, b)[0],
    "divui": lambda a, b: a // b,
    "remsi": lambda a, b: integers.truncated_division(a, b)[1],
    "remui": lambda a, b: a % b,
    "ceildivsi": lambda a, b: a // b + (a % b != 0),
    "ceildivui": lambda a, b: a // b + (a % b != 0),
    "floordivsi": lambda a, b: a // b,
}


@operation("arith.shli", "arith.shrsi", "arith.shrui")
def shift(site: Site) -> Step:
    kind = site.name.removeprefix("arith.")
    return site.compute(elementwise(integers.shifting(site.element, kind)))


@operation("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")
def extremum(site: Site) -> Step:
    element = site.element
    larger, is_signed = site.name.startswith("arith.max"), site.name.endswith("si")
    view = integers.signed if is_signed else integers.unsigned

    def scalar(a: Any, b: Any) -> Any:
        first = view(a, element) >= view(b, element)
        return a if first == larger else b

    def array(a: Any, b: Any) -> Any:
        first = view(a, element) >= view(b, element)
        return where(first == larger, a, b)

    return site.compute(elementwise(array if site.arrays(site.result_type) else scalar))


_COMPARE: tuple[Callable[[Any, Any], Any], ...] = (
    operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


@operation("arith.cmpi")
def compare_integers(site: Site) -> Step:
    predicate, type_ = site.integer("predicate"), site.operand_types[0]
    compare, element = _COMPARE[predicate], type_.of
    if predicate >= 6 or (predicate >= 2 and element.bits == 1):
        view = integers.unsigned if predicate >= 6 else integers.signed
        return site.compute(elementwise(lambda a, b: compare(view(a, element), view(b, element))))
    return site.compute(elementwise(compare) if site.arrays(type_) else compare)


@operation("arith.select")
def select(site: Site) -> Step:
    scalar = site.operand_types[0].form == "scalar" and not site.lifted
    return site.compute(_choose if scalar else _choose_elements)


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    if type(condition) is Poison:
        return condition
    return yes if condition else no


def _choose_elements(condition: Any, yes: Any, no: Any) -> Any:
    for operand in (condition, yes, no):
        if type(operand) is Poison or type(operand) is PartialPoison:
            break
    else:
        return where(condition, yes, no)
    if type(condition) is Poison:
        return condition
    chosen = values_of(condition)
    like = next(each for each in (yes, no, condition) if type(each) is not Poison)
    parts = [_whole(each, values_of(like)) for each in (yes, no)]
    values = where(chosen, values_of(parts[0]), values_of(parts[1]))
    mask = where(chosen, mask_of(parts[0]), mask_of(parts[1])) | mask_of(condition)
    cause = next(
        each.cause
        for each in (condition, yes, no)
        if type(each) is Poison or type(each) is PartialPoison
    )
    return with_poison(values, mask, cause)


def _whole(value: Any, like: Any) -> Any:
    """A tensor that is poison as a whole, element by element."""
    if type(value) is not Poison:
        return value
    return PartialPoison(np.zeros_like(like), np.ones(np.shape(like), np.bool_), value.cause)


_FLOAT_BINARY: dict[str, Any] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maxnumf": extrema.maxnum,
    "arith.minnumf": extrema.minnum,
    "arith.maximumf": extrema.maximum,
    "arith.minimumf": extrema.minimum,
    "tt.precise_divf": np.divide,
    "tt.approx_divf": np.divide,
}


@operation(*_FLOAT_BINARY)
def float_binary(site: Site) -> Step:
    return site.compute(elementwise(_FLOAT_BINARY[site.name]))


@operation("arith.negf")
def negate(site: Site) -> Step:
    return site.compute(elementwise(np.negative))


_ORDERED: tuple[Any, ...] = (
    None, np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal,
)  # fmt: skip


@operation("arith.cmpf")
def compare_floats(site: Site) -> Step:
    return site.compute(elementwise(_float_comparison(site.integer("predicate"), site)))


def _float_comparison(predicate: int, site: Site) -> Callable[[Any, Any], Any]:
    finish = np.asarray if site.arrays(site.operand_types[0]) else bool

    def unordered(a: Any, b: Any) -> Any:
        return np.isnan(a) | np.isnan(b)

    def compare(a: Any, b: Any) -> Any:
        either = unordered(a, b)
        if predicate in (0, 15):
            return finish(np.full(np.shape(a), predicate == 15))
        if predicate in (7, 14):
            return finish(either if predicate == 14 else ~either)
        if predicate < 7:
            return finish(_ORDERED[predicate](a, b) & ~either)
        return finish(_ORDERED[predicate - 7](a, b) | either)

    return compare


_CASTS: dict[str, Callable[[Element, Element], Callable[[Any], Any]]] = {
    "arith.extsi": casts.sign_extension,
    "arith.extui": casts.zero_extension,
    "arith.trunci": casts.truncation,
    "arith.index_cast": casts.sign_extension,
    "arith.index_castui": casts.zero_extension,
    "arith.sitofp": casts.from_signed,
    "arith.uitofp": casts.from_unsigned,
    "arith.fptosi": casts.to_signed,
    "arith.fptoui": casts.to_unsigned,
    "arith.extf": casts.float_to_float,
    "arith.truncf": casts.float_to_float,
    "arith.bitcast": casts.same_bits,
    "tt.bitcast": casts.same_bits,
    "tt.int_to_ptr": casts.same_bits,
    "tt.ptr_to_int": casts.same_bits,
}


@operation(*_CASTS)
def cast_(site: Site) -> Step:
    convert = _CASTS[site.name](site.operand_types[0].of, site.element)
    return site.compute(elementwise(convert))


@operation("tt.fp_to_fp")
def fp_to_fp(site: Site) -> Step:
    source, target = site.operand_types[0].of, site.element
    toward_zero = site.attribute("rounding") is not None and site.integer("rounding") == 0
    if toward_zero and target.bits < source.bits:
        return site.compute(elementwise(casts.float_toward_zero(source, target)))
    return site.compute(elementwise(casts.float_to_float(source, target)))
