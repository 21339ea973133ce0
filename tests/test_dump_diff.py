"""Differences: what `patch` would make of them, and what stands beside what."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence

import pytest

from tilepass.dump.diff import align, unified
from tilepass.dump.ir_text import essence, without_locations
from tilepass.dump.rows import Gap, Row, counts, fold, side_by_side

_HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


def apply_patch(text: str, patch: str) -> str:
    """What `patch` does, as strict as can be: context lines and line numbers must agree."""
    source, result, at = text.splitlines(), list[str](), 0
    lines = patch.splitlines()[2:]
    for line in lines:
        if header := _HUNK.match(line):
            start = int(header[1]) - (1 if int(header[2]) else 0)
            result += source[at:start]
            at = start
            assert len(result) == int(header[3]) - (1 if int(header[4]) else 0)
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert source[at] == line[1:]
            at += 1
            if line[0] == " ":
                result.append(line[1:])
    return "".join(f"{line}\n" for line in result + source[at:])


def random_texts(seed: int, words: int) -> tuple[list[str], list[str]]:
    """A text and what random deletions, insertions, moves and renumberings make of it."""
    dice = random.Random(seed)
    left = [f"%{at} = op{dice.randrange(words)} %{at - 1}" for at in range(dice.randrange(60))]
    right: list[str] = []
    for line in left:
        fate = dice.random()
        if fate < 0.6:
            right.append(line)
        elif fate < 0.7:
            right.append("  " + line.replace("%", "%1"))
        elif fate < 0.85:
            right.insert(dice.randrange(len(right) + 1), line + " {new}")
    return left, right


def text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("words", [2, 20, 1000])
def test_a_unified_diff_turns_the_left_text_into_the_right(words: int) -> None:
    for seed in range(100):
        left, right = random_texts(seed, words)
        patch = unified(text(left), text(right), "a", "b")
        assert (patch == "") == (left == right)
        if patch:
            assert patch.startswith("--- a\n+++ b\n@@")
            assert apply_patch(text(left), patch) == text(right)


@pytest.mark.parametrize("words", [2, 20, 1000])
def test_rows_hold_both_texts_in_order(words: int) -> None:
    for seed in range(100):
        left, right = random_texts(seed, words)
        rows = side_by_side(left, right)
        assert [row.left for row in rows if row.left is not None] == list(range(len(left)))
        assert [row.right for row in rows if row.right is not None] == list(range(len(right)))
        for row in rows:
            a = None if row.left is None else left[row.left]
            b = None if row.right is None else right[row.right]
            assert (row.kind == "same") == (a == b)
            assert (row.kind == "removed") == (b is None)
            assert (row.kind == "added") == (a is None)
            if row.kind == "renumbered":
                assert a is not None
                assert b is not None
                assert essence(a) == essence(b)


def test_renumbering_and_indentation_are_quiet() -> None:
    left = ["%0 = a", "%1 = b %0", "scf.yield %1"]
    right = ["%0 = new", "%1 = a", "  %2 = b %1", "  scf.yield %2"]
    rows = side_by_side(left, right)
    assert rows == [
        Row("added", None, 0),
        Row("renumbered", 0, 1),
        Row("renumbered", 1, 2),
        Row("renumbered", 2, 3),
    ]
    assert counts(rows) == (0, 1)


def test_like_lines_of_a_replaced_block_stand_side_by_side() -> None:
    left = ["x", "%a = tt.load %p : tensor<4xf32>", "%b = tt.dot %a, %a : tensor<4xf32>", "y"]
    right = ["x", "%q = arith.constant 3 : i64", "%b = tt.dot %a, %a {fast} : tensor<4xf32>", "y"]
    assert [(row.kind, row.left, row.right) for row in side_by_side(left, right)] == [
        ("same", 0, 0),
        ("removed", 1, None),
        ("added", None, 1),
        ("changed", 2, 2),
        ("same", 3, 3),
    ]


def test_folding_hides_quiet_rows_and_counts_them() -> None:
    rows = [Row("same", at, at) for at in range(20)]
    rows.insert(10, Row("added", None, 10))
    folded = fold(rows, context=2, limit=100)
    assert folded == [Gap(8), *rows[8:13], Gap(8)]
    shown = [row for row in folded if isinstance(row, Row)]
    hidden = sum(row.count for row in folded if isinstance(row, Gap))
    assert len(shown) + hidden == len(rows)


def test_folding_says_how_much_it_cuts_off() -> None:
    rows = [Row("added", None, at) for at in range(50)]
    assert fold(rows, context=2, limit=10) == [*rows[:10], Gap(40, loud=True)]


def test_long_repetitive_texts_take_seconds_not_hours() -> None:
    block = [f"%{at} = op{at % 300} %{at}, %{at - 7} : tensor<4x{at % 9}xf32>" for at in range(400)]
    left = block * 100
    dice = random.Random(1)
    right = [line for line in left if dice.random() > 0.1]
    start = time.process_time()
    blocks = align(left, right)
    # difflib alone takes minutes. About 0.6 s on a 2025 laptop core.
    assert time.process_time() - start < 15
    kept = sum(block.left_end - block.left for block in blocks if block.equal)
    assert kept > 0.8 * len(left)


@pytest.mark.parametrize(
    ("located", "bare"),
    [
        ("%0 = tt.load %p : i32 loc(#loc3)\n", "%0 = tt.load %p : i32\n"),
        ('#loc = loc("a.py":1:2)\nx loc(#loc)\n', "x\n"),
        ('#loc2 = loc(callsite("f"("a.py":1:2) at #loc3))\nx\n', "x\n"),
        ('f(%a: i32 loc("a"("b(c).py":1:2)), %b: i32 loc(unknown))', "f(%a: i32, %b: i32)"),
        ('"asm loc(x)" loc(fused<"k">["a", callsite(#loc at #loc1)])', '"asm loc(x)"'),
        ('tt.print " loc(\\" kept) " : %x', 'tt.print " loc(\\" kept) " : %x'),
    ],
)
def test_locations_go_and_strings_stay(located: str, bare: str) -> None:
    assert without_locations(located) == bare


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %12:3 = scf.for %arg4 = %c0_i32_7 to %0", "%:3 = scf.for %arg = %c0_i32 to %"),
        ("%acc_13 = tt.dot %acc_2#1, %a.b_1", "%acc = tt.dot %acc#1, %a.b"),
        ("cf.br ^bb12(%1 : i32)", "cf.br ^bb(% : i32)"),
        ("store i32 %4, ptr %5, !dbg !17", "store i32 %, ptr %, !dbg !"),
    ],
)
def test_the_essence_of_a_line_has_no_value_numbers(line: str, expected: str) -> None:
    assert essence(line) == expected
