"""Systematic mutants of a module's source: one small change of one expression or statement each.

Changed are comparisons (boundary and negation), arithmetic and bit operators, `and` and `or`,
integers (by one) and flags, minima and maxima, conditions, filters of comprehensions, what is
returned (None where that may be, a constant truth, a parameter of the result's type), one operand
or argument for both, and statements (left out). Left alone are annotations, names of types,
decorators, docstrings, messages (the arguments of what is raised, f-strings) and assertions
(`zip(strict=True)`, too): they decide nothing.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_COMPUTED: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
_OPPOSITES = {
    **{"any": "all", "all": "any", "min": "max", "max": "min"},
    **{"minimum": "maximum", "maximum": "minimum"},
}
# Calls of which one argument stands for all.
_OF_EITHER = ("min", "max", "minimum", "maximum", "join", "join_numbers", "where")


@dataclass(frozen=True)
class Mutant:
    """`name` says function and change, whatever the line; `source` is the module's new text."""

    name: str
    line: int
    source: str


@dataclass(frozen=True)
class _Change:
    node: ast.expr | ast.stmt
    text: str


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    raw, found = source.encode(), list[Mutant]()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen = Counter[str]()
    for function, change in _Finder().changes(ast.parse(source)):
        node = change.node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        name = f"{function}: {_short(ast.unparse(node))} -> {_short(change.text)}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" (#{seen[name]})"
        text = (raw[:first] + change.text.encode() + raw[last:]).decode()
        found.append(Mutant(name, node.lineno, text))
    return found


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """`count` mutants, one of each of as many stretches of the text, so that none is left out."""
    if count >= len(mutants):
        return list(mutants)
    choose, width = random.Random(seed), len(mutants) / count
    return [mutants[int((index + choose.random()) * width)] for index in range(count)]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 100 else f"{words[:60]} ... {words[-35:]}"


class _Finder:
    """Walks over a module; `_function` is where it is."""

    def __init__(self) -> None:
        self._function = "module"
        self._parameters: dict[str, str] = {}
        self._returned = ""

    def changes(self, node: ast.AST) -> Iterator[tuple[str, _Change]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self._within(node)
            return
        if isinstance(node, ast.AnnAssign):
            yield from self.changes(node.value) if node.value else ()
            return
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node):
            return
        if isinstance(node, ast.Assign) and self._function == "module" and _names_types(node.value):
            return
        if isinstance(node, ast.Raise):
            yield self._function, _Change(node, "pass")
            return
        if isinstance(node, ast.expr | ast.stmt):
            for change in self._here(node):
                yield self._function, change
        for child in _children(node):
            yield from self.changes(child)

    def _within(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[str, _Change]]:
        outside = (self._function, self._parameters, self._returned)
        outer = "" if self._function == "module" else f"{self._function}."
        self._function = outer + node.name
        if isinstance(node, ast.FunctionDef):
            self._returned = _text(node.returns)
            self._parameters = {each.arg: _text(each.annotation) for each in node.args.args}
            for default in node.args.defaults:
                yield from self.changes(default)
        for child in node.body:
            yield from self.changes(child)
        self._function, self._parameters, self._returned = outside

    def _here(self, node: ast.expr | ast.stmt) -> Iterator[_Change]:
        for kind, rule in _RULES.items():
            if isinstance(node, kind):
                for text in rule(node):
                    yield _Change(node, text)
        if isinstance(node, ast.If | ast.IfExp):
            for text in ("True", "False"):
                yield _Change(node.test, text)
            if not isinstance(node.test, ast.Compare | ast.UnaryOp):
                yield _Change(node.test, f"not ({ast.unparse(node.test)})")
        if isinstance(node, ast.Return) and node.value is not None:
            yield from self._return(node, node.value)

    def _return(self, node: ast.Return, value: ast.expr) -> Iterator[_Change]:
        if isinstance(value, ast.Constant):
            return
        if self._returned == "bool":
            for text in ("True", "False"):
                yield _Change(node, f"return {text}")
        elif "None" in self._returned:
            yield _Change(node, "return None")
        for name, kind in self._parameters.items():
            same = kind == self._returned and name != "self" and self._returned != "bool"
            if same and ast.unparse(value) != name:
                yield _Change(node, f"return {name}")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What a walk goes into: no docstring, no types in expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(node, ast.UnaryOp) and isinstance(child, ast.Constant):
            continue
        if isinstance(node, ast.Call) and _name(node.func) in ("isinstance", "cast"):
            which = 0 if _name(node.func) == "isinstance" else 1
            if child is not node.args[which]:
                continue
        if isinstance(child, ast.keyword) and child.arg == "strict":
            continue
        if isinstance(node, ast.Call) and child is node.func and isinstance(child, ast.Subscript):
            continue
        yield child


def _names_types(value: ast.expr) -> bool:
    """Whether this is `One | Other` of types: what a name for several stands for."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return _names_types(value.left) and _names_types(value.right)
    name = ast.unparse(value).partition("[")[0]
    return isinstance(value, ast.Name | ast.Subscript) and (name[0].isupper() or name == "tuple")


def _text(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _compare(node: ast.Compare) -> Iterator[str]:
    operands = [node.left, *node.comparators]
    for place, operator in enumerate(node.ops):
        for other in _COMPARED[type(operator)]:
            words = [ast.unparse(operands[0])]
            for index, each in enumerate(node.ops):
                sign = other if index == place else _SIGNS[type(each)]
                words += [sign, _operand(operands[index + 1])]
            yield f"({' '.join(words)})"


_SIGNS: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}


def _operand(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _binary(node: ast.BinOp) -> Iterator[str]:
    other = _COMPUTED.get(type(node.op))
    text = any(isinstance(each, ast.Constant) and isinstance(each.value, str)
               for each in (node.left, node.right))  # fmt: skip
    if other is None or text:
        return
    left, right = _operand(node.left), _operand(node.right)
    yield f"({left} {other} {right})"
    yield left
    yield right


def _boolean(node: ast.BoolOp) -> Iterator[str]:
    parts = [_operand(each) for each in node.values]
    own, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield f"({f' {other} '.join(parts)})"
    for left_out in range(len(parts)):
        yield f"({f' {own} '.join(parts[:left_out] + parts[left_out + 1 :])})"


def _unary(node: ast.UnaryOp) -> Iterator[str]:
    if isinstance(node.op, ast.Not | ast.Invert):
        yield _operand(node.operand)
    elif isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        assert isinstance(node.operand.value, int | float)
        yield f"({1 - node.operand.value})"
        yield f"({-1 - node.operand.value})"
    elif isinstance(node.op, ast.USub):
        yield _operand(node.operand)


def _constant(node: ast.Constant) -> Iterator[str]:
    if isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node.value, int):
        yield str(node.value + 1)
        yield f"({node.value - 1})"


def _call(node: ast.Call) -> Iterator[str]:
    name = _name(node.func)
    if name in _OPPOSITES:
        changed = ast.unparse(node.func).removesuffix(name) + _OPPOSITES[name]
        rest = ast.unparse(node).removeprefix(ast.unparse(node.func))
        yield changed + rest
    if name in _OF_EITHER:
        sides = node.args[-2:] if len(node.args) >= 2 else []
        for each in sides:
            if not isinstance(each, ast.Starred | ast.Lambda | ast.GeneratorExp):
                yield _operand(each)


def _either(node: ast.IfExp) -> Iterator[str]:
    yield f"({ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {ast.unparse(node.body)})"


def _filtered(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[str]:
    for place, each in enumerate(node.generators):
        if each.ifs:
            copy = ast.parse(ast.unparse(node), mode="eval").body
            assert isinstance(copy, type(node))
            copy.generators[place].ifs = []
            yield ast.unparse(copy)


def _statement(node: ast.stmt) -> Iterator[str]:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        yield "pass"


def _assigned(node: ast.Assign) -> Iterator[str]:
    if not any(isinstance(each, ast.Name | ast.Tuple) for each in node.targets):
        yield "pass"


_RULES: dict[type[ast.AST], Callable[..., Iterator[str]]] = {
    ast.Compare: _compare,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.IfExp: _either,
    ast.ListComp: _filtered,
    ast.SetComp: _filtered,
    ast.GeneratorExp: _filtered,
    ast.DictComp: _filtered,
    ast.Expr: _statement,
    ast.AugAssign: _statement,
    ast.Continue: _statement,
    ast.Break: _statement,
    ast.Assign: _assigned,
}
