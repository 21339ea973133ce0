"""Which gemm of the traced module a lowered operation comes from.

Order does not tell: lowering may move, unroll or drop operations. `tag_sites` wraps the location
of every `cute.gemm` of a module in the name `tilepass.site.<index>`, which lowering hands on to
what it makes of the gemm, and writes the operand types into an attribute of the module. A TMA load
says in its type how many bits it copies, and nothing lowered says it any more: its location gets
the name `tilepass.copy.<bytes>`.

Tag the clone that is lowered for analysis, never the module that is compiled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilepass.ir.cute import StaticTensor, static_tensor
from tilepass.ir.engine import Module, Operation, ir, operations
from tilepass.ir.layouts import split_list

GEMM = "cute.gemm"
COPY = "cute.copy"
ATTRIBUTE = "tilepass.sites"
_SITE = re.compile(r'"tilepass\.site\.(\d+)"')
_COPY = re.compile(r'"tilepass\.copy\.(\d+)"')
_COPY_BITS = re.compile(r"tma_load<.*?copy_bits = (\d+)", re.DOTALL)


@dataclass(frozen=True)
class GemmSite:
    """A gemm as traced: `d` is the accumulator, None where an operand is no register tensor."""

    index: int
    atom: str
    d: StaticTensor | None
    a: StaticTensor | None
    b: StaticTensor | None


def gemms_of(module: Module) -> list[Operation]:
    """The gemms of a traced module in the order of their site indices."""
    return [operation for operation in operations(module) if operation.name == GEMM]


def tag_sites(module: Module) -> int:
    """Tag a clone of a traced module, in place; the number of gemms."""
    with module.context:
        found = [each for each in operations(module) if each.name in (GEMM, COPY)]
        rows = list[ir.Attribute]()
        for operation, types in zip(found, _operand_types(module, (GEMM, COPY)), strict=True):
            if operation.name == GEMM:
                _rename(operation, f"tilepass.site.{len(rows)}")
                rows.append(ir.ArrayAttr.get([ir.StringAttr.get(text) for text in types]))
            elif match := _COPY_BITS.search(types[0]):
                _rename(operation, f"tilepass.copy.{-(-int(match[1]) // 8)}")
        module.operation.attributes[ATTRIBUTE] = ir.ArrayAttr.get(rows)
    return len(rows)


def _rename(operation: Operation, name: str) -> None:
    # The stubs of the bindings know no setter.
    operation.location = ir.Location.name(name, operation.location)  # pyright: ignore[reportAttributeAccessIssue]


def _operand_types(module: Module, names: tuple[str, ...]) -> list[list[str]]:
    """The types of the operands of a module's operations of some names, as texts, in their order.

    From the printed module: asking a traced operation for its operands makes tensors of the DSL,
    which inserts operations into the module, and to print one operation takes as long as to number
    all values around it. The operations named have no results.
    """
    text = module.operation.get_asm(
        print_generic_op_form=True,
        use_local_scope=True,
        enable_debug_info=False,
        assume_verified=True,
    )
    starts = tuple(f'"{name}"(' for name in names)
    lines = [line for line in map(str.strip, text.splitlines()) if line.startswith(starts)]
    return [split_list(line[line.index(" : (") + 4 : line.rindex(") -> ")]) for line in lines]


def sites_of(module: Module) -> list[GemmSite]:
    """What `tag_sites` wrote into a module, read from its lowered form."""
    if ATTRIBUTE not in module.operation.attributes:
        return []
    rows = ir.ArrayAttr(module.operation.attributes[ATTRIBUTE])
    found = list[GemmSite]()
    for index, row in enumerate(rows):
        texts = [ir.StringAttr(text).value for text in ir.ArrayAttr(row)]
        fragments = [_fragment(text) for text in texts[1:4]]
        fragments += [None] * (3 - len(fragments))
        found.append(GemmSite(index, texts[0], fragments[0], fragments[1], fragments[2]))
    return found


def site_of(location: ir.Location) -> int | None:
    """The site that a location names; the last one where it names several."""
    found = _SITE.findall(str(location))
    return int(found[-1]) if found else None


def transfer_bytes_of(location: ir.Location) -> int | None:
    """The bytes of the TMA copy that a location names."""
    found = _COPY.findall(str(location))
    return max(int(size) for size in found) if found else None


def _fragment(text: str) -> StaticTensor | None:
    tensor = static_tensor(text)
    return tensor if tensor is not None and tensor.space == "rmem" else None
