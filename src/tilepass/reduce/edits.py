"""What may be done to a module to make it smaller.

A kind of edit finds its sites in a module, in the order of the text, and changes the module there.
An edit may leave a module that does not verify, and may change what it computes: whether the
command still fails is all that counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tilepass.ir import engine
from tilepass.ir.build import Builder, all_attributes
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Module, ir
from tilepass.ir.walks import ancestors, is_used, users

Apply = Callable[[], None]
"""Changes a module at one site; may raise CannotEdit."""

_TERMINATORS = re.compile(r".*\.(yield|return|condition|warp_return|warp_yield|br|cond_br)$")
_FUNCTIONS = ("tt.func", "func.func", "gpu.func")
_SYMBOL = re.compile(r'@"?([\w.$-]+)')
_FOR, _IF, _CONSTANT = "scf.for", "scf.if", "arith.constant"
_PARTITIONS = "ttg.warp_specialize.partitions"
_NEEDED = ("value", "sym_name", "function_type", "operandSegmentSizes", "resultSegmentSizes")


class CannotEdit(Exception):
    """A site at which there is nothing to do after all."""


@dataclass(frozen=True)
class Kind:
    """A kind of edit; `find` lists its sites in a module, `tidies` says whether what nobody uses
    goes with them."""

    name: str
    find: Callable[[Module], list[Apply]]
    tidies: bool = True


def tidy(module: Module) -> None:
    """Erase operations whose results nobody uses and that nothing observes."""
    changed = True
    while changed:
        changed = False
        for operation in reversed(_inner(module)):
            if _is_unused(operation):
                operation.erase()
                changed = True


def size(module: Module) -> int:
    """The number of operations, the module's own not counted."""
    return len(engine.operations(module)) - 1


def _inner(module: Module) -> list[ir.Operation]:
    """All operations but modules, functions and terminators."""
    return [
        each
        for each in engine.operations(module)[1:]
        if each.name not in _FUNCTIONS and not _TERMINATORS.match(each.name)
    ]


def _is_unused(operation: ir.Operation) -> bool:
    if is_used(operation):
        return False
    effects = effects_of(operation)
    # A buffer without a user is allocated for nothing.
    return not effects & ~Effect.READ or operation.name == "ttg.local_alloc"


def _functions(module: Module) -> list[Apply]:
    """Erase a function."""
    return [each.erase for each in _uncalled(module)]


def _uncalled(module: Module) -> list[ir.Operation]:
    """The functions that no operation of the module names."""
    # In generic form a function's own name is a string.
    named = set(_SYMBOL.findall(engine.print_generic(module)))
    functions = [each for each in engine.operations(module) if each.name in _FUNCTIONS]
    return [each for each in functions if str(each.attributes["sym_name"]).strip('"') not in named]


def _operations(module: Module) -> list[Apply]:
    """Erase an operation; what used its results uses an operand of that type, or zero. A constant
    goes where nobody uses it, or another one has its value."""
    constants = dict[ir.Attribute, ir.Operation]()
    found = list[Apply]()
    for each in _inner(module):
        if each.name != _CONSTANT:
            found.append(partial(_remove, each))
            continue
        first = constants.setdefault(each.attributes["value"], each)
        if not is_used(each):
            found.append(each.erase)
        elif first != each and first.block == each.block:
            found.append(partial(_replace, each, first))
    return found


def _replace(operation: ir.Operation, other: ir.Operation) -> None:
    operation.results[0].replace_all_uses_with(other.results[0])
    operation.erase()


def _remove(operation: ir.Operation) -> None:
    for index, result in enumerate(operation.results):
        if users(result):
            result.replace_all_uses_with(_instead(operation, index))
    operation.erase()


def _instead(operation: ir.Operation, index: int) -> ir.Value:
    """A value of a result's type that is there before the operation."""
    if operation.name == _FOR:
        return operation.operands[3 + index]
    type_ = operation.results[index].type
    for operand in operation.operands:
        if operand.type == type_:
            return operand
    zero = _zero(operation, type_)
    if zero is not None:
        return zero
    for value in _earlier(operation):
        if value.type == type_:
            return value
    raise CannotEdit


def _earlier(operation: ir.Operation) -> Iterator[ir.Value]:
    """The values that an operation may use, the nearest first."""
    block: ir.Block = operation.block
    for each in reversed(list(block.operations)):
        if each.operation.is_before_in_block(operation):
            yield from each.operation.results
    yield from block.arguments
    parent = operation.parent
    if parent is not None and parent.operation.name not in (*_FUNCTIONS, "builtin.module"):
        yield from _earlier(parent.operation)


def _zero(operation: ir.Operation, type_: ir.Type) -> ir.Value | None:
    """A constant zero of a type at the start of the function; None for types without one."""
    attribute = _zero_attribute(type_)
    block = _entry(operation)
    if attribute is None or block is None:
        return None
    for each in block.operations:
        if each.operation.name != _CONSTANT:
            break
        if each.operation.attributes["value"] == attribute:
            return each.operation.results[0]
    first = block.operations[0].operation
    constant = Builder(ir.InsertionPoint(first), first.location).create(
        _CONSTANT, (), (type_,), {"value": attribute}
    )
    return constant.results[0]


def _zero_attribute(type_: ir.Type) -> ir.Attribute | None:
    scalar = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    if isinstance(scalar, ir.IntegerType | ir.IndexType):
        number = "false" if str(scalar) == "i1" else "0"
    elif isinstance(scalar, ir.FloatType):
        number = "0.0"
    else:
        return None
    number = f"dense<{number}>" if scalar != type_ else number
    typed = number if number == "false" else f"{number} : {type_}"
    return ir.Attribute.parse(typed, type_.context)


def _entry(operation: ir.Operation) -> ir.Block | None:
    """The first block of the function around an operation."""
    around = [operation, *ancestors(operation)]
    function = next((each for each in around if each.name in _FUNCTIONS), None)
    return function.regions[0].blocks[0] if function is not None else None


def _regions(module: Module) -> list[Apply]:
    """Run a loop's body once, or the first branch of a condition, where the operation is."""
    return [partial(_inline, each, 0) for each in _inner(module) if each.name in (_FOR, _IF)]


def _other_branches(module: Module) -> list[Apply]:
    """Run the other branch of a condition where the operation is."""
    return [
        partial(_inline, each, 1)
        for each in _inner(module)
        if each.name == _IF and len(each.regions[1].blocks)
    ]


def _inline(operation: ir.Operation, index: int) -> None:
    block = operation.regions[index].blocks[0]
    if operation.name == _FOR:
        starts = [operation.operands[0], *list(operation.operands)[3:]]
        for argument, start in zip(block.arguments, starts, strict=True):
            argument.replace_all_uses_with(start)
    *body, end = list(block.operations)
    for each in body:
        each.operation.move_before(operation)
    for result, value in zip(operation.results, end.operation.operands, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


def _carried(module: Module) -> list[Apply]:
    """Drop a value that a loop carries: it stays what it starts as."""
    found = list[Apply]()
    for each in _inner(module):
        if each.name == _FOR:
            # The loop is made anew at each edit.
            holder = [each]
            found += [partial(_drop_carried, holder, at) for at in range(len(each.results))]
    return found


def _drop_carried(holder: list[ir.Operation], index: int) -> None:
    (loop,) = holder
    start = loop.operands[3 + index]
    block = loop.regions[0].blocks[0]
    block.arguments[1 + index].replace_all_uses_with(start)
    loop.results[index].replace_all_uses_with(start)
    end = block.operations[len(block.operations) - 1].operation
    values = [value for at, value in enumerate(end.operands) if at != index]
    Builder(ir.InsertionPoint(end), end.location).create("scf.yield", values)
    end.erase()
    block.erase_argument(1 + index)
    kept = [at for at in range(len(loop.results)) if at != index]
    smaller = _with_operands(loop, [0, 1, 2, *(3 + at for at in kept)], kept)
    for new, at in enumerate(kept):
        loop.results[at].replace_all_uses_with(smaller.results[new])
    loop.erase()
    holder[0] = smaller


def _with_operands(
    operation: ir.Operation, operands: Sequence[int], results: Sequence[int]
) -> ir.Operation:
    """The same operation with some of its operands and results; the regions move to it."""
    smaller = Builder.before(operation).create(
        operation.name,
        [operation.operands[at] for at in operands],
        [operation.results[at].type for at in results],
        all_attributes(operation),
        regions=len(operation.regions),
    )
    for old, new in zip(operation.regions, smaller.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    return smaller


def _captures(module: Module) -> list[Apply]:
    """Drop a value that partitions are given and none of them uses."""
    found = list[Apply]()
    for each in _inner(module):
        if each.name != _PARTITIONS:
            continue
        blocks = [region.blocks[0] for region in each.regions]
        # The outer operation has them before Triton 3.7, the inner one since.
        holder = [each if len(each.operands) or not each.parent else each.parent.operation]
        found += [
            partial(_drop_capture, holder, blocks, index)
            for index in range(len(holder[0].operands))
            if not any(users(block.arguments[index]) for block in blocks)
        ]
    return found


def _drop_capture(holder: list[ir.Operation], blocks: Sequence[ir.Block], index: int) -> None:
    (operation,) = holder
    for block in blocks:
        block.erase_argument(index)
    kept = [at for at in range(len(operation.operands)) if at != index]
    holder[0] = _with_operands(operation, kept, range(len(operation.results)))
    for old, new in zip(operation.results, holder[0].results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()


def _operands(module: Module) -> list[Apply]:
    """Use zero for an operand that something computes."""
    return [
        partial(_set_operand, each, index)
        for each in engine.operations(module)[1:]
        for index, operand in enumerate(each.operands)
        if _computes(operand)
    ]


def _computes(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.name != _CONSTANT


def _set_operand(operation: ir.Operation, index: int) -> None:
    zero = _zero(operation, operation.operands[index].type)
    if zero is None:
        raise CannotEdit
    operation.operands[index] = zero


def _constants(module: Module) -> list[Apply]:
    """Halve an integer constant above one."""
    found = list[Apply]()
    for each in engine.operations(module):
        if each.name != _CONSTANT or not isinstance(each.attributes["value"], ir.IntegerAttr):
            continue
        attribute = ir.IntegerAttr(each.attributes["value"])
        if attribute.value > 1 and str(attribute.type) != "i1":
            found += [
                partial(_set_value, each, attribute, value)
                for value in dict.fromkeys((1, attribute.value // 2))
            ]
    return found


def _set_value(constant: ir.Operation, attribute: ir.IntegerAttr, value: int) -> None:
    constant.attributes["value"] = ir.IntegerAttr.get(attribute.type, value)


def _attributes(module: Module) -> list[Apply]:
    """Drop an attribute."""
    return [
        partial(_drop_attribute, each, name)
        for each in engine.operations(module)
        for name in list(each.attributes)
        if name not in _NEEDED
        and not name.startswith("ttg.")
        # The engine cannot print an operation that lacks one of its own.
        and ("." in name or not each.context.is_registered_operation(each.name))
    ]


def _drop_attribute(operation: ir.Operation, name: str) -> None:
    del operation.attributes[name]


def _parameters(module: Module) -> list[Apply]:
    """Drop a parameter of a function that nobody uses."""
    return [
        partial(_drop_parameter, each, index)
        for each in _uncalled(module)
        if each.regions[0].blocks
        for index, argument in enumerate(each.regions[0].blocks[0].arguments)
        if not users(argument)
    ]


def _drop_parameter(function: ir.Operation, index: int) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [each for at, each in enumerate(type_.inputs) if at != index]
    kept = ir.FunctionType.get(inputs, type_.results, function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(kept, function.context)
    if "arg_attrs" in function.attributes:
        given = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        del given[index]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(given, function.context)
    function.regions[0].blocks[0].erase_argument(index)


KINDS: Sequence[Kind] = (
    Kind("functions", _functions),
    Kind("operations", _operations),
    Kind("regions", _regions),
    Kind("other branches", _other_branches),
    Kind("carried values", _carried),
    Kind("captures", _captures),
    Kind("operands", _operands),
    Kind("parameters", _parameters),
    Kind("constants", _constants),
    Kind("attributes", _attributes),
    # For a command that fails on an operation whose results nobody uses.
    Kind("operations alone", _operations, tidies=False),
)

_DIMENSION = re.compile(r"(?<=[<x])(\d+)(?=x)")
_LEAST_DIMENSION = 16


def dimensions(text: str) -> list[int]:
    """The sizes of tensors, buffers and blocks in a module's generic text, the largest first."""
    found = {int(number) for number in _DIMENSION.findall(text)}
    return sorted((number for number in found if number > _LEAST_DIMENSION), reverse=True)


def with_dimension(text: str, old: int, new: int) -> str:
    """A module's text in which a size of tensors is another one, also where ranges end and loops
    step by it."""
    text = re.sub(rf"(?<=[<x]){old}(?=x)", str(new), text)
    text = re.sub(rf"\bend = {old} : i32", f"end = {new} : i32", text)
    return re.sub(rf"\bvalue = {old} : (i32|i64|index)", rf"value = {new} : \1", text)
