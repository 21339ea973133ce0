"""The chains of evidence in remarks of `cute-zero-mma`, and the source lines that they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_STEP = re.compile(r"gemm (\d+) .*?: evidence \d+, (\w+): \S+ at (.+?):(\d+):\d+")

Step = tuple[str, Path, str]
"""Kind (mask, store, load, fragment), file, and the text of the line in that file."""


def chains(remarks: Iterable[str]) -> dict[int, list[Step]]:
    """The steps of each gemm's evidence, in their order."""
    found: dict[int, list[Step]] = {}
    for remark in remarks:
        if match := _STEP.search(remark):
            file = Path(match[3])
            text = file.read_text(encoding="utf-8").splitlines()[int(match[4]) - 1]
            found.setdefault(int(match[1]), []).append((match[2], file, text.strip()))
    return found


def assert_chain(steps: list[Step], mask: str) -> None:
    """A mask on the only line of its file that holds `mask`, a store, a load, and the gemm."""
    assert [kind for kind, _, _ in steps] == ["mask", "store", "load", "fragment"]
    (_, file, line), (_, _, store), (_, _, load), (_, _, gemm) = steps
    assert mask in line
    assert file.read_text(encoding="utf-8").count(mask) == 1
    assert store.startswith("cute.copy(") or store.endswith(".fill(0.0)")
    assert load.startswith("cute.copy(")
    assert gemm.startswith("cute.gemm(")
