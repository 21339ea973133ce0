"""Thin builders for operations of arith, scf, tt, ttg and ttng.

A `Builder` has a place and a location. Nothing is inferred or folded: the verifier, Triton's
included, has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tilepass.ir import guards
from tilepass.ir.engine import ir
from tilepass.ir.loops import Loop

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
Predicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]

IntegerOp = Literal[
    "addi",
    "subi",
    "muli",
    "divsi",
    "divui",
    "remsi",
    "remui",
    "minsi",
    "maxsi",
    "andi",
    "ori",
    "xori",
]


class Builder:
    """Creates operations at one place, each after the one before."""

    def __init__(self, place: ir.InsertionPoint, location: ir.Location) -> None:
        self.place = place
        self.location = location
        self.context = location.context

    @classmethod
    def before(cls, operation: ir.Operation) -> Builder:
        """Before an operation, with its location."""
        return cls(ir.InsertionPoint(operation), operation.location)

    @classmethod
    def after(cls, operation: ir.Operation) -> Builder:
        """Behind an operation, with its location."""
        return cls(ir.InsertionPoint.after(operation), operation.location)

    @classmethod
    def at_end(cls, block: ir.Block, location: ir.Location) -> Builder:
        """At the end of a block that has no terminator yet."""
        return cls(ir.InsertionPoint(block), location)

    def create(
        self,
        name: str,
        operands: Sequence[ir.Value] = (),
        results: Sequence[ir.Type] = (),
        attributes: Mapping[str, ir.Attribute | str] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """Any operation; attributes may be given as MLIR text."""
        return ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes={
                key: self.attribute(value) if isinstance(value, str) else value
                for key, value in (attributes or {}).items()
            },
            regions=regions,
            loc=self.location,
            ip=self.place,
        )

    def attribute(self, text: str) -> ir.Attribute:
        """An attribute from its text. Raises MLIRError where it does not parse."""
        return ir.Attribute.parse(text, self.context)

    def type(self, view: object) -> ir.Type:
        """A type from its text or from a view of ir.layouts. Raises MLIRError."""
        return ir.Type.parse(str(view), self.context)

    # arith

    def constant(self, value: int | bool, type_: ir.Type | str = "i32") -> ir.Value:
        """An integer constant; of a tensor type, a splat."""
        type_ = self.type(type_) if isinstance(type_, str) else type_
        attribute: ir.Attribute | str = f"dense<{int(value)}> : {type_}"
        if not isinstance(type_, ir.RankedTensorType):
            attribute = ir.IntegerAttr.get(type_, int(value))
        return self._value("arith.constant", (), type_, {"value": attribute})

    def zeros(self, type_: ir.Type) -> ir.Value:
        """A tensor of zeros, of integers or floating-point numbers."""
        is_integer = isinstance(ir.RankedTensorType(type_).element_type, ir.IntegerType)
        value = f"dense<{0 if is_integer else 0.0}> : {type_}"
        return self._value("arith.constant", (), type_, {"value": value})

    def integer(self, name: IntegerOp, left: ir.Value, right: ir.Value) -> ir.Value:
        """A binary integer operation of arith: `integer("addi", a, b)`."""
        return self._value(f"arith.{name}", (left, right), left.type)

    def compare(self, predicate: Predicate, left: ir.Value, right: ir.Value) -> ir.Value:
        """`arith.cmpi` of scalars; the result is an i1."""
        code = f"{_PREDICATES.index(predicate)} : i64"
        return self._value("arith.cmpi", (left, right), self.type("i1"), {"predicate": code})

    def select(self, condition: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
        """`arith.select`."""
        return self._value("arith.select", (condition, on_true, on_false), on_true.type)

    def cast(
        self,
        name: Literal["extsi", "extui", "trunci", "index_cast"],
        value: ir.Value,
        type_: ir.Type,
    ) -> ir.Value:
        """An integer cast of arith."""
        return self._value(f"arith.{name}", (value,), type_)

    # scf

    def loop(
        self,
        lower: ir.Value,
        upper: ir.Value,
        step: ir.Value,
        initial: Sequence[ir.Value] = (),
        attributes: Mapping[str, ir.Attribute | str] | None = None,
    ) -> Loop:
        """An `scf.for` with an empty body: the caller fills it and ends it with `yield_`."""
        types = [value.type for value in initial]
        operation = self.create(
            "scf.for", (lower, upper, step, *initial), types, attributes, regions=1
        )
        operation.regions[0].blocks.append(
            lower.type, *types, arg_locs=[self.location] * (1 + len(types))
        )
        return Loop(operation)

    def if_(
        self, condition: ir.Value, results: Sequence[ir.Type] = ()
    ) -> tuple[ir.Operation, ir.Block, ir.Block]:
        """An `scf.if` with two empty blocks: the caller ends both with `yield_`."""
        operation = self.create("scf.if", (condition,), results, regions=2)
        then, otherwise = (region.blocks.append() for region in operation.regions)
        return operation, then, otherwise

    def yield_(self, values: Sequence[ir.Value] = ()) -> ir.Operation:
        """The terminator of a body of scf."""
        return self.create("scf.yield", values)

    # tt, ttg, ttng

    def program_id(self, axis: int = 0) -> ir.Value:
        """`tt.get_program_id`."""
        return self._value("tt.get_program_id", (), self.type("i32"), {"axis": f"{axis} : i32"})

    def num_programs(self, axis: int = 0) -> ir.Value:
        """`tt.get_num_programs`."""
        return self._value("tt.get_num_programs", (), self.type("i32"), {"axis": f"{axis} : i32"})

    def splat(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """`tt.splat` of a scalar."""
        return self._value("tt.splat", (value,), type_)

    def convert_layout(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """`ttg.convert_layout` of a tensor to the same tensor in another layout."""
        return self._value("ttg.convert_layout", (value,), type_)

    def local_alloc(self, type_: ir.Type, value: ir.Value | None = None) -> ir.Value:
        """`ttg.local_alloc` of a buffer in shared memory, holding `value` if there is one."""
        return self._value("ttg.local_alloc", () if value is None else (value,), type_)

    def local_load(self, buffer: ir.Value, type_: ir.Type) -> ir.Value:
        """`ttg.local_load` of a whole buffer into registers."""
        return self._value("ttg.local_load", (buffer,), type_)

    def dot_wait(self, values: Sequence[ir.Value], pendings: int) -> list[ir.Value]:
        """`ttng.warp_group_dot_wait` until at most `pendings` dots are outstanding."""
        wait = self.create(
            "ttng.warp_group_dot_wait",
            values,
            [value.type for value in values],
            {"pendings": f"{pendings} : i32"},
        )
        return list(wait.results)

    def _value(
        self,
        name: str,
        operands: Sequence[ir.Value],
        type_: ir.Type,
        attributes: Mapping[str, ir.Attribute | str] | None = None,
    ) -> ir.Value:
        return self.create(name, operands, [type_], attributes).results[0]


def set_attribute(operation: ir.Operation, name: str, text: str = "unit") -> None:
    """Set an attribute or property from its text; `unit` makes a flag of it."""
    operation.attributes[name] = ir.Attribute.parse(text, operation.context)


def remove_attribute(operation: ir.Operation, name: str) -> ir.Operation:
    """Remove an attribute or property; returns the operation to go on with.

    MLIR cannot take a property from an operation of a dialect that it does not know: the operation
    is then replaced by one without it, regions moved. No effect where there is no such attribute.
    """
    attributes = operation.attributes
    if name not in attributes:
        return operation
    is_property = name not in list(attributes)
    if is_property and not operation.context.is_registered_operation(operation.name):
        return _rebuilt_without(operation, name)
    guards.delete_unchecked(attributes, name)
    return operation


def _rebuilt_without(operation: ir.Operation, name: str) -> ir.Operation:
    kept = {key: value for key, value in all_attributes(operation).items() if key != name}
    successor = Builder.before(operation).create(
        operation.name,
        list(operation.operands),
        [result.type for result in operation.results],
        kept,
        regions=len(operation.regions),
    )
    for old, new in zip(operation.regions, successor.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    for old, new in zip(operation.results, successor.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()
    return successor


def all_attributes(operation: ir.Operation) -> dict[str, ir.Attribute]:
    """Properties and attributes; iterating over `attributes` leaves the former out."""
    header = operation.get_asm(print_generic_op_form=True, skip_regions=True, use_local_scope=True)
    if "<{" not in header:
        return dict(operation.attributes.items())
    properties = ir.Attribute.parse(_properties_text(header), operation.context)
    assert isinstance(properties, ir.DictAttr)
    named = [properties[index] for index in range(len(properties))]
    return {each.name: each.attr for each in named} | dict(operation.attributes.items())


def _properties_text(header: str) -> str:
    """The dictionary in the `<{...}>` that stands behind the operands."""
    start = header.index("<{") + 1
    depth, quoted = 0, False
    for at in range(start, len(header)):
        character = header[at]
        if character == '"' and header[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return header[start : at + 1]
    raise ValueError(f"no properties in '{header}'")
