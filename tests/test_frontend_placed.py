"""Which places a pipeline may give a pass: those in the compiler that the pass is made for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilepass.core.anchor import Anchor
from tilepass.core.errors import AnchorError, TilepassError
from tilepass.frontends.placed import place_passes

PASS_FILE = """
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register

@register
class Placed(Pass):
    name = "placed-pass"
    anchor = Anchor.end_of("{stage}")
    touches = {touches}

    def run(self, module, context):
        pass
"""
FOR_CUTE = "it is made for the CuTe DSL, whose only place is end:trace"
FOR_TRITON = "it is made for Triton, whose stages are ttir, glir, ttgir, llir"


def pass_file(folder: Path, stage: str, *touches: str) -> Path:
    file = folder / "placed_pass.py"
    file.write_text(PASS_FILE.format(stage=stage, touches=touches))
    return file


@pytest.mark.parametrize(
    ("name", "place", "reason"),
    [
        ("cute-zero-mma", "end:ttir", FOR_CUTE),
        ("cute-zero-mma", "start:llir", FOR_CUTE),
        ("cute-zero-mma", "after:tritongpu-coalesce", FOR_CUTE),
        ("cute-zero-mma", "after:*", FOR_CUTE),
        ("cute-zero-mma", "end:trice", FOR_CUTE),
        ("flatten-loops", "end:trace", FOR_TRITON),
        ("flatten-loops", "end:trace?", FOR_TRITON),
        ("strip-assume", "start:trace", FOR_TRITON),
        ("epilogue-warp-specialize", "end:trace", FOR_TRITON),
    ],
)
def test_a_place_in_the_other_compiler(name: str, place: str, reason: str) -> None:
    message = f"pass '{name}' cannot run at '{place}': {reason}"
    with pytest.raises(AnchorError, match=f"^{re.escape(message)}$"):
        place_passes(f"{name}@{place}")


@pytest.mark.parametrize("place", ["end:ttir", "after:triton-loop-aware-cse", "start:ttgri"])
def test_a_pass_that_cannot_be_moved(place: str) -> None:
    """What flatten-loops proves, Triton's passes between the proof and fusion could undo."""
    own = "before:tritongpu-fuse-nested-loops"
    message = f"pass 'flatten-loops' cannot run at '{place}': what it rests on holds at '{own}'"
    with pytest.raises(AnchorError, match=f"^{re.escape(message)} alone$"):
        place_passes(f"flatten-loops@{place}")
    (placed,) = place_passes(f"flatten-loops@{own}?")
    assert placed.anchor.optional


@pytest.mark.parametrize(
    "text",
    [
        "cute-zero-mma@end:trace",
        "fix-dot-wait@start:ttgir",
        "fix-dot-wait@after:tritongpu-coalesce#1",
        "strip-assume@end:ttgir",
        # Not known to be wrong before a compilation says which stages it has.
        "fix-dot-wait@end:ttri",
        # It takes every module.
        "test-round-trip@end:trace",
    ],
)
def test_other_places(text: str) -> None:
    (placed,) = place_passes(text)
    assert str(placed).endswith(text[text.index("@") :])


def test_passes_of_a_file(tmp_path: Path) -> None:
    """What a pass touches makes it one for the compiler of its own place."""
    for own, other in (("ttir", "trace"), ("trace", "ttgir")):
        file = pass_file(tmp_path, own, "arith.addf")
        with pytest.raises(AnchorError, match=f"'placed-pass' cannot run at 'end:{other}'"):
            place_passes(f"placed-pass@end:{other}", [file], quiet=True)
        file = pass_file(tmp_path, own)
        (placed,) = place_passes(f"placed-pass@end:{other}", [file], quiet=True)
        assert placed.anchor.where == other


def test_a_place_of_its_own_that_no_compiler_has(tmp_path: Path) -> None:
    """It is an error at once, in the author's line, and not when something is compiled."""
    file = pass_file(tmp_path, "ttirr", "arith.addf")
    message = (
        f"--load {file}: anchor 'end:ttirr': there is no such place; did you mean 'ttir' or "
        f"'ttgir'? (stages: ttir, glir, ttgir, trace) ({file}:8, in Placed)"
    )
    with pytest.raises(TilepassError, match=f"^{re.escape(message)}$"):
        place_passes("placed-pass", [file], quiet=True)
    for make in (Anchor.before, Anchor.after):
        with pytest.raises(AnchorError, match=":canonical ize': expected start:STAGE"):
            make("canonical ize")
