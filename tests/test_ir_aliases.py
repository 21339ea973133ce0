"""Alias expansion: whole names, nested bodies, never inside strings; and the way back."""

from __future__ import annotations

import pytest

from tilepass.ir import engine
from tilepass.ir.aliases import Aliases, expand_aliases

SHARED = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>"


def test_a_name_is_not_the_beginning_of_another() -> None:
    text = "#s = #a.x<1>\n#s1 = #a.y<2>\n#s10 = #a.z<3>\nuse #s #s1 #s10 #s.kept #s100\n"
    assert expand_aliases(text) == "use #a.x<1> #a.y<2> #a.z<3> #s.kept #s100\n"


def test_bodies_refer_to_other_aliases() -> None:
    text = "#b = #a.x<1>\n#c = #a.slice<#b>\n!t = !a.t<#c, #b>\nuse !t #c\n"
    assert expand_aliases(text) == "use !a.t<#a.slice<#a.x<1>>, #a.x<1>> #a.slice<#a.x<1>>\n"


@pytest.mark.parametrize(
    "inert",
    [
        '"asm"() {text = "#b and !t"}',
        '"asm"() {text = "a \\" #b"}',
        '"a"() : () -> () // a quote " and #b',
        '"a"() {s = "// no comment"} {x = "#b"}',
    ],
)
def test_strings_and_comments_are_left_alone(inert: str) -> None:
    text = f"#b = #a.x<1>\n!t = !a.t<2>\n{inert}\nuse #b\n"
    assert expand_aliases(text) == f"{inert}\nuse #a.x<1>\n"


def test_locations_stay() -> None:
    text = '#b = #a.x<1>\n#loc = loc("f":1:2)\nuse #b loc(#loc3)\n#loc3 = loc(unknown)\n'
    assert expand_aliases(text) == text.split("\n", 1)[1].replace("#b", "#a.x<1>")


def test_a_text_without_aliases_is_unchanged() -> None:
    text = 'module {\n "a.b"() : () -> ()\n}\n^bb1: // 2 preds: ^bb2, ^bb3\n{-#\n#-}\n'
    assert expand_aliases(text) == text


def test_large_texts_are_worked_on_in_parts() -> None:
    line = '"a"() : () -> !a.t<#b1, #b>\n'
    count = 3_000_000 // len(line)
    expanded = expand_aliases(f"#b = #a.x<1>\n#b1 = #a.y<#b>\n{line * count}")
    assert expanded == '"a"() : () -> !a.t<#a.y<#a.x<1>>, #a.x<1>>\n' * count


def test_shortening_is_undone_by_expansion() -> None:
    given = f'#blocked = #a.x<1>\n#smem = #ttg.mem\n#s = {SHARED}\nuse #s #blocked #smem "q"\n'
    aliases, expanded = Aliases.expand(given)
    short = "".join(aliases.shorten([expanded]))
    assert SHARED not in short.split("use")[1]
    assert expand_aliases(short) == expanded


def test_attributes_that_came_in_later_are_shortened_too() -> None:
    aliases, _ = Aliases.expand(f"#s = {SHARED}\nuse #s\n")
    new = "#ttg.blocked<{order = [0]}>"
    printed = [f"use {SHARED} #ttg.slice<{{dim = 0, parent = {new}}}>\n", f"use {new}\n"]
    short = "".join(aliases.shorten(printed))
    assert short.count(new) == short.count(SHARED) == 1
    assert expand_aliases(short) == "".join(printed)


def test_shortening_leaves_strings_alone() -> None:
    aliases, _ = Aliases.expand(f"#s = {SHARED}\nuse #s\n")
    line = f'"asm"() {{text = "{SHARED}"}} : {SHARED}\n'
    assert "".join(aliases.shorten([line])).endswith(line)


def test_opaque_types_hold_no_names_in_the_engine() -> None:
    text = (
        f'#s = {SHARED}\n#m = #ttg.shared_memory\n"builtin.module"() ({{\n'
        '  %0 = "a.b"() : () -> !ttg.memdesc<4xi64, #s, #m, mutable>\n}) : () -> ()\n'
    )
    module = engine.parse(text)
    type_ = module.body.operations[0].operation.results[0].type
    assert str(type_) == f"!ttg.memdesc<4xi64, {SHARED}, #ttg.shared_memory, mutable>"
