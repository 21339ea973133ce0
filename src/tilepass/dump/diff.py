"""Which lines of two texts belong together, fast enough for modules of many thousand lines.

Lines are compared without indentation and without the numbers of their values: a pass that adds
one operation renumbers every value behind it, one that adds a region indents its body, and neither
alone is a difference to look at. Lines that occur once on both sides are matched first, then runs
of lines that do (patience diff); `difflib` looks at what is left between them. Where that is long
and repetitive it is cut into pieces: time stays linear, and the answer is still a correct
difference, if not the shortest.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tilepass.dump.ir_text import essence, lines_of

# difflib takes time in the product of the two sides' lengths: pieces of at most this many lines.
_LONGEST_PIECE = 300
# Runs of this many lines are looked for where no single line occurs once on both sides.
_RUN = 8

_Range = tuple[int, int]


@dataclass(frozen=True)
class Block:
    """Lines `[left, left_end)` of one text against `[right, right_end)` of the other.

    Both sides of an `equal` block have the same length; their lines are equal in essence.
    """

    equal: bool
    left: int
    left_end: int
    right: int
    right_end: int


def align(left: Sequence[str], right: Sequence[str]) -> list[Block]:
    """Blocks that cover both texts from their first lines to their last, equal ones alternating
    with others."""
    pairs = _match(_keys(left), _keys(right))
    return list(_blocks(pairs, len(left), len(right)))


def unified(left: str, right: str, left_name: str, right_name: str, context: int = 3) -> str:
    """A unified diff that `patch` takes; empty where the texts are equal.

    Both texts are taken to end in a newline.
    """
    a, b = lines_of(left), lines_of(right)
    same = [
        (at, other)
        for block in align(a, b)
        if block.equal
        for at, other in zip(
            range(block.left, block.left_end), range(block.right, block.right_end), strict=True
        )
        if a[at] == b[other]
    ]
    matcher: Any = difflib.SequenceMatcher(None, a, b, autojunk=False)
    equal = [each for each in _blocks(same, len(a), len(b)) if each.equal]
    matcher.matching_blocks = [
        *(difflib.Match(each.left, each.right, each.left_end - each.left) for each in equal),
        difflib.Match(len(a), len(b), 0),
    ]
    lines: list[str] = []
    for hunk in matcher.get_grouped_opcodes(context):
        (_, first, _, other, _), (_, _, end, _, other_end) = hunk[0], hunk[-1]
        lines.append(f"@@ -{_range(first, end)} +{_range(other, other_end)} @@")
        for tag, start, stop, at, until in hunk:
            if tag == "equal":
                lines += [f" {line}" for line in a[start:stop]]
                continue
            lines += [f"-{line}" for line in a[start:stop]]
            lines += [f"+{line}" for line in b[at:until]]
    return "\n".join([f"--- {left_name}", f"+++ {right_name}", *lines, ""]) if lines else ""


def _keys(lines: Sequence[str]) -> list[str]:
    return [essence(line) for line in lines]


def _match(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of indices of equal keys, ascending on both sides."""
    pairs: list[tuple[int, int]] = []
    work = [(0, len(left), 0, len(right))]
    while work:
        start, end, other, other_end = work.pop()
        while start < end and other < other_end and left[start] == right[other]:
            pairs.append((start, other))
            start, other = start + 1, other + 1
        while start < end and other < other_end and left[end - 1] == right[other_end - 1]:
            end, other_end = end - 1, other_end - 1
            pairs.append((end, other_end))
        if start == end or other == other_end:
            continue
        anchors = _anchors(left, right, (start, end), (other, other_end))
        if not anchors:
            pairs += _by_difflib(left, right, (start, end), (other, other_end))
            continue
        for at, other_at in [*anchors, (end, other_end)]:
            work.append((start, at, other, other_at))
            start, other = at + 1, other_at + 1
        pairs += anchors
    return sorted(pairs)


def _anchors(
    left: Sequence[str], right: Sequence[str], lefts: _Range, rights: _Range
) -> list[tuple[int, int]]:
    """Pairs of lines that surely belong together: unique themselves, or by what follows them."""
    found = _unique_pairs(left[slice(*lefts)], right[slice(*rights)])
    if not found and max(lefts[1] - lefts[0], rights[1] - rights[0]) > _LONGEST_PIECE:
        found = _unique_pairs(_runs(left[slice(*lefts)]), _runs(right[slice(*rights)]))
    return [(lefts[0] + at, rights[0] + other) for at, other in found]


def _runs(lines: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(lines[at : at + _RUN]) for at in range(len(lines))]


def _unique_pairs(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest ascending run of pairs of equal items that occur once on each side."""
    left_counts, right_counts = Counter(left), Counter(right)
    where = {item: at for at, item in enumerate(right) if right_counts[item] == 1}
    pairs = [
        (at, where[item])
        for at, item in enumerate(left)
        if left_counts[item] == 1 and item in where
    ]
    return _longest_ascending(pairs)


def _longest_ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A longest subsequence ascending in the second element (patience sorting, n log n)."""
    tails: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for index, (_, value) in enumerate(pairs):
        pile = bisect_left(tails, value)
        before.append(tops[pile - 1] if pile else -1)
        if pile == len(tails):
            tails.append(value)
            tops.append(index)
        else:
            tails[pile], tops[pile] = value, index
    chain: list[tuple[int, int]] = []
    index = tops[-1] if tops else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _by_difflib(
    left: Sequence[str], right: Sequence[str], lefts: _Range, rights: _Range
) -> Iterator[tuple[int, int]]:
    longest = max(lefts[1] - lefts[0], rights[1] - rights[0])
    pieces = -(-longest // _LONGEST_PIECE)
    for a, b in zip(_cut(lefts, pieces), _cut(rights, pieces), strict=True):
        matcher = difflib.SequenceMatcher(None, left[slice(*a)], right[slice(*b)], autojunk=False)
        for match in matcher.get_matching_blocks():
            for offset in range(match.size):
                yield a[0] + match.a + offset, b[0] + match.b + offset


def _cut(lines: _Range, pieces: int) -> list[_Range]:
    bounds = [lines[0] + (lines[1] - lines[0]) * at // pieces for at in range(pieces + 1)]
    return list(pairwise(bounds))


def _blocks(pairs: Sequence[tuple[int, int]], lefts: int, rights: int) -> Iterator[Block]:
    left = right = 0
    index = 0
    while index < len(pairs):
        start, other = pairs[index]
        if (start, other) != (left, right):
            yield Block(False, left, start, right, other)
        length = 1
        while index + length < len(pairs) and pairs[index + length] == (
            start + length,
            other + length,
        ):
            length += 1
        left, right = start + length, other + length
        yield Block(True, start, left, other, right)
        index += length
    if (left, right) != (lefts, rights):
        yield Block(False, left, lefts, right, rights)


def _range(start: int, end: int) -> str:
    """`first,count` with lines counted from 1; an empty range names the line before it."""
    length = end - start
    return f"{start + 1 if length else start},{length}"
