"""`tilepass diff`: the pass after which two dumps first differ, and points that became slower."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tilepass.cli.guard import run_guarded
from tilepass.cli.main import main
from tilepass.dump.steps import CompilationRecord, Step, append_step, write_compilation
from tilepass.dump.store import write_file

REPORT = Path(__file__).resolve().parents[1] / "results" / "flatten_bf16.json"
# Name, text of the IR after it where it changed something.
Steps = Sequence[tuple[str, str | None]]
STEPS: Steps = (
    ("source", "a\nb\n"), ("canonicalize", None), ("cse", "a\n"), ("our-pass{mode=on}", "a\nc\n"),
    ("canonicalize", None), ("loops", "a\nc\nd\n"),
)  # fmt: skip


def dump(
    folder: Path, steps: Steps, registers: int = 40, target: int = 90, code: str = "x"
) -> Path:
    """A dump of one kernel that took these steps of ttgir."""
    kernel = folder / f"k-{target}-{code}"
    kernel.mkdir(parents=True)
    record = CompilationRecord("k", "key", "triton", "cuda", target, "triton 3.6.0", "")
    write_compilation(kernel, record)
    for number, (text, ir) in enumerate(steps):
        name = text.partition("{")[0]
        file = None if ir is None else f"{number:04}-{name}.ttgir"
        if file and ir:
            write_file(kernel / file, ir)
        append_step(kernel, Step(number, "ttgir", name, "triton", text, ir is not None, file))
    figures = {"registers": registers, "code_hash": code, "families": {"HGMMA": 4}}
    write_file(kernel / "figures.json", json.dumps(figures))
    return folder


def diff(*words: str | Path) -> int:
    return run_guarded(main, ["diff", *map(str, words)])


def changed(at: int, *step: tuple[str, str | None]) -> Steps:
    return [*STEPS[:at], *step, *STEPS[at + 1 :]]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (changed(3, ("our-pass{mode=off}", None)),
         ["first differs after our-pass in ttgir (steps 3 and 3)", "A: our-pass{mode=on}",
          "B: our-pass{mode=off}", "-c"]),
        # Shown where both have a step, and named where one has none.
        (changed(3), ["first differs after canonicalize in ttgir (steps 4 and 3)",
                      "only in A: our-pass in ttgir", "-c"]),
        (changed(4, ("canonicalize", None), ("more", None)),
         ["the same IR after every step that both have", "only in B: more in ttgir"]),
        # Written again, and the same.
        (changed(4, ("canonicalize", "a\nc\n")), ["the same after every step"]),
        (changed(1, ("canonicalize", "b\n")), ["after canonicalize in ttgir (steps 1 and 1)"]),
        (changed(5, ("loops", "a\nc\ne\n")), ["first differs after loops", "-d", "+e"]),
    ],
)  # fmt: skip
def test_first_difference(
    other: Steps, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = dump(tmp_path / "a", STEPS), dump(tmp_path / "b", other)
    status = diff(left, right)
    out = capsys.readouterr().out
    assert out.startswith("k (cuda:90): ")
    for text in said:
        assert text in out
    assert status == (0 if said == ["the same after every step"] else 1)
    # A kernel's own folder will do.
    (one,), (two,) = left.iterdir(), right.iterdir()
    assert diff(one, two) == status
    capsys.readouterr()


def test_figures_and_long_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "".join(f"line {number}\n" for number in range(100))
    left = dump(tmp_path / "a", STEPS)
    right = dump(tmp_path / "b", changed(5, ("loops", long)), registers=48, code="y")
    assert diff(left, right, "--lines", "10") == 1
    out = capsys.readouterr().out
    assert "registers: 40 in A, 48 in B" in out
    assert "HGMMA" not in out
    assert "more lines: --lines)" in out
    assert len(out.splitlines()) == 13


def test_same_ir_and_another_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = dump(tmp_path / "a", STEPS), dump(tmp_path / "b", STEPS, code="y")
    assert diff(left, right) == 1
    assert "the same IR after every step that both have" in capsys.readouterr().out


def test_kernels_that_only_one_dump_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = dump(tmp_path / "a", STEPS), dump(tmp_path / "b", STEPS, target=100)
    assert diff(left, right) == 1
    assert "has no k for cuda:90, which is in" in capsys.readouterr().err
    dump(left, STEPS, target=100)
    dump(right, STEPS)
    assert diff(left, right) == 0
    dump(left, STEPS, code="z")
    assert diff(left, right) == 1
    assert "has no k for cuda:90, compilation 2, which is in" in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert diff(left, empty) == 1
    assert "no dump of `tilepass dump-ir -o`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("factor", "verdict", "status"), [(1.0, "SAME", 0), (0.9, "FASTER", 0), (1.1, "SLOWER", 1)]
)
def test_reports(
    factor: float, verdict: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = json.loads(REPORT.read_text())
    measured = report["points"][1]["arms"][1]["against_baseline"]
    for end in ("ratio", "low", "high"):
        measured[end] *= factor
    report["points"][2]["arms"][2]["against_baseline"] = None
    report["points"].pop()
    file = tmp_path / "after.json"
    file.write_text(json.dumps(report))
    assert diff(REPORT, file) == status
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[-1] for row in rows[:-1]] == [
        *["SAME"] * 2, verdict, *["SAME"] * 2, "UNSURE", *["SAME"] * 4, *["UNSURE"] * 2,
    ]  # fmt: skip
    assert "3 UNSURE" in rows[-1]


def test_what_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, said in (("{", "cannot be read"), ("[]", "no report of"), ("{}", "no report of")):
        file = tmp_path / "report.json"
        file.write_text(text)
        assert diff(file, REPORT) == 1
        assert said in capsys.readouterr().err
    assert diff(REPORT, tmp_path / "none.json") == 1
    assert "cannot be read" in capsys.readouterr().err
