"""Loop nests that are a little smaller than a given one."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from tests.fuzz_loops.nests import Access, If, Loop, Nest, Statement


def smaller(nest: Nest) -> Iterator[Nest]:
    """Nests with one thing less: a statement, a carried value, or a condition around statements."""
    for position in range(_size(nest)):
        for change in (_remove, _unwrap, _drop_carried):
            candidate = deepcopy(nest)
            if change(candidate, position):
                yield candidate


def _blocks(statements: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
    for index, each in enumerate(statements):
        yield statements, index
        if isinstance(each, Loop):
            yield from _blocks(each.body)
        if isinstance(each, If):
            yield from _blocks(each.then)
            yield from _blocks(each.otherwise)


def _size(nest: Nest) -> int:
    return sum(1 for _ in _blocks(nest.statements))


def _remove(nest: Nest, position: int) -> bool:
    block, index = list(_blocks(nest.statements))[position]
    removed = block.pop(index)
    for name in removed.gives:
        by_kind = {"%a": "%one", "%q": "%q_in"}
        _replace(nest, name, by_kind.get(name[:2], "%c1"))
    return True


def _unwrap(nest: Nest, position: int) -> bool:
    block, index = list(_blocks(nest.statements))[position]
    each = block[index]
    if not isinstance(each, If):
        return False
    block[index : index + 1] = each.then
    for name, (value, _) in zip(each.gives, each.yields, strict=True):
        _replace(nest, name, value)
    return True


def _drop_carried(nest: Nest, position: int) -> bool:
    block, index = list(_blocks(nest.statements))[position]
    each = block[index]
    if not isinstance(each, Loop) or not each.carried or each.carried[0][0].startswith("%acc"):
        return False
    name, initial, _ = each.carried.pop(0)
    result = each.gives.pop(0)
    _replace(nest, name, initial)
    _replace(nest, result, initial)
    return True


def _replace(nest: Nest, old: str, new: str) -> None:
    def changed(name: str) -> str:
        return new if name == old else name

    for block, index in list(_blocks(nest.statements)):
        each = block[index]
        each.reads = [changed(name) for name in each.reads]
        if isinstance(each, Access):
            each.array = changed(each.array)
        if isinstance(each, If):
            each.yields = [(changed(one), changed(other)) for one, other in each.yields]
        if isinstance(each, Loop):
            each.carried = [
                (name, changed(initial), changed(value)) for name, initial, value in each.carried
            ]
