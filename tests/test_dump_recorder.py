"""What a recorder writes: numbered files, records, and what is left when writing fails."""

from __future__ import annotations

import errno
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from dump_support import MARK_LOOPS, compile_always, finished_dump, record

from tilepass.core.decisions import Decision
from tilepass.core.pass_base import CompilerVersion, PassContext, Target
from tilepass.core.remarks import RemarkSink
from tilepass.dump.kernel_files import RecorderOptions, Said
from tilepass.dump.left_out import take_left_out
from tilepass.dump.recorder import PassRun, Recorder, is_finished
from tilepass.dump.report import finish_dump, finish_kernel, mlir_changes
from tilepass.dump.steps import read_compilation, read_steps
from tilepass.dump.store import DumpError, new_folder

AMD = Target("hip", "gfx942", 64)


@dataclass(frozen=True)
class Compilation:
    """What the front end would tell of a compilation."""

    key: str = "ab" * 32
    kernel: str = "kernel"
    language: str = "triton"
    target: Target = AMD
    options: dict[str, object] = field(default_factory=dict[str, object])


def play(recorder: Recorder, compilation: Compilation, passes: int = 2) -> None:
    """A compilation of two stages, as the front end would show it."""
    recorder.begin(compilation, lambda: "module { %0 loc(#loc) }\n")
    for index in range(passes):
        recorder.after_pass("ttir", index, f"pass-{index}{{x=1}}", "triton", text_of(index))
    recorder.after_stage("ttir", text_of(passes - 1))
    recorder.after_stage("hsaco", lambda: b"binary")


def text_of(index: int) -> Callable[[], str]:
    return lambda: f"module {{ %{index} loc(#loc) }}\n"


def make(folder: Path, locations: bool = False) -> Recorder:
    return Recorder(RecorderOptions(folder, locations=locations), compiler="triton 1")


def test_every_pass_and_stage_of_a_compilation_has_its_file() -> None:
    _, report = finished_dump()
    steps = report.steps
    assert [step.number for step in steps] == list(range(len(steps)))
    assert all(step.file and (report.folder / step.file).is_file() for step in steps)
    stages = [step.stage for step in steps if step.origin == "stage"]
    assert stages == ["ttir", "ttir", "ttgir", "llir", "ptx", "cubin", "sass"]
    names = [step.name for step in steps if step.origin == "triton"]
    assert {"canonicalize", "tritongpu-pipeline", "convert-triton-gpu-to-llvm"} <= set(names)
    pipeline = next(step for step in steps if step.name == "tritongpu-pipeline")
    assert pipeline.file == f"{pipeline.number:04d}-ttgir-tritongpu-pipeline.ttgir"
    assert "num-stages=3" in pipeline.pass_text


def test_our_pass_stands_where_it_ran_with_remark_and_decision() -> None:
    _, report = finished_dump()
    (ours,) = (step for step in report.steps if step.origin == "tilepass")
    assert ours.changed
    assert ours.name == "mark-loops"
    assert report.steps[ours.number + 1].name == "ttir"
    (remark,) = ours.remarks
    assert "dump_kernels.py" in remark
    assert "[mark-loops] passed: mark = on" in remark
    (decision,) = ours.decisions
    assert (decision["kind"], decision["source"], decision["facts"]) == (
        "mark",
        "default",
        {"loops": 1},
    )
    assert "test.mark" in (report.folder / str(ours.file)).read_text()


def test_a_step_is_changed_exactly_if_its_text_is() -> None:
    _, report = finished_dump()
    mlir = [step for step in report.steps if step.is_mlir]
    texts = [(report.folder / str(step.file)).read_text() for step in mlir]
    changed = [a != b for a, b in pairwise(texts)]
    assert [step.changed for step in mlir[1:]] == changed
    diffs = {path.name for path in report.folder.glob("*.diff")}
    changes = [step for _, step in mlir_changes(report.folder, report.steps)]
    assert diffs == {Path(str(step.file)).with_suffix(".diff").name for step in changes}


def test_figures_of_a_dump_are_those_of_the_kernel() -> None:
    _, report = finished_dump()
    assert report.figures is not None
    assert report.figures.families["HGMMA"] > 0
    assert report.figures.shared_bytes
    written = json.loads((report.folder / "figures.json").read_text())
    assert written["registers"] == report.figures.registers
    assert report.summary().startswith(f"small_matmul (cuda:90): {report.figures.registers} ")


def test_only_changed_leaves_out_files_but_no_steps(tmp_path: Path) -> None:
    _, full = finished_dump()
    dump = tmp_path / "dump"
    dump.mkdir()
    record(dump, only_changed=True)
    (report,) = finish_dump(dump)
    assert [step.name for step in report.steps] == [step.name for step in full.steps]
    for step, whole in zip(report.steps, full.steps, strict=True):
        kept = step.changed or step.origin == "stage"
        assert step.file == (whole.file if kept else None)
    assert {path.name for path in report.folder.glob("*.diff")} == {
        path.name for path in full.folder.glob("*.diff")
    }


@pytest.mark.parametrize("locations", [False, True])
def test_locations_are_kept_on_demand(tmp_path: Path, locations: bool) -> None:
    play(make(tmp_path, locations=locations), Compilation())
    text = (tmp_path / "kernel-hipgfx942-abababab/0001-ttir-pass-0.ttir").read_text()
    assert ("loc(" in text) == locations


def test_specializations_get_folders_of_their_own(tmp_path: Path) -> None:
    recorder = make(tmp_path)
    play(recorder, Compilation())
    play(recorder, Compilation(key="cd" * 32))
    # The first one again, as another process would compile it.
    play(make(tmp_path), Compilation())
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["kernel-hipgfx942-abababab", "kernel-hipgfx942-cdcdcdcd"]


def test_an_unfinished_compilation_does_not_hide_the_next(tmp_path: Path) -> None:
    recorder = make(tmp_path)
    recorder.begin(Compilation(), text_of(0))
    play(make(tmp_path), Compilation())
    first, second = sorted(tmp_path.iterdir())
    assert (is_finished(first), is_finished(second)) == (False, True)
    report = finish_kernel(first)
    assert report.problem == "the compilation did not finish (last step: source)"


def test_threads_do_not_mix(tmp_path: Path) -> None:
    recorder = make(tmp_path)
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        play(recorder, Compilation(key=f"{number:02d}" * 32), passes=20)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 8
    for folder in folders:
        names = [step.name for step in read_steps(folder)]
        assert names == ["source", *(f"pass-{index}" for index in range(20)), "ttir", "hsaco"]


def test_one_folder_name_is_given_out_once(tmp_path: Path) -> None:
    folders: list[Path] = []
    threads = [
        threading.Thread(target=lambda: folders.append(new_folder(tmp_path, "k")))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(folders)) == 16


def test_remarks_of_a_pass_are_those_of_its_context(tmp_path: Path) -> None:
    recorder = make(tmp_path)
    recorder.begin(Compilation(), text_of(0))
    earlier = Decision("old", "1", "default", "before this pass")
    sink = RemarkSink("p", lambda where: None)
    context = PassContext("p", CompilerVersion("triton", (3,)), sink, decisions=[earlier])
    recorder.before_pass(context)
    context.remarks.missed(None, "why not")
    context.decisions.append(Decision("new", "2", "forced", "of this pass"))
    recorder.after_pass("ttir", 0, "p", "tilepass", text_of(1))
    recorder.after_pass("ttir", 1, "q", "triton", text_of(2))
    (folder,) = tmp_path.iterdir()
    _, ours, other = read_steps(folder)
    assert ours.remarks == ("remark: [p] missed: why not",)
    assert [decision["kind"] for decision in ours.decisions] == ["new"]
    assert (other.remarks, other.decisions) == ((), ())


def test_passes_that_ran_before_the_compiler_come_first(tmp_path: Path) -> None:
    recorder = make(tmp_path)
    recorder.begin_with("source", [PassRun("ttir", "mine{a=1}", "after", Said(("said",)))])
    recorder.begin(Compilation(), text_of(0))
    (folder,) = tmp_path.iterdir()
    source, mine = read_steps(folder)
    assert (folder / str(source.file)).read_text() == "source"
    assert (mine.name, mine.origin, mine.remarks) == ("mine", "tilepass", ("said",))


def disk_full_after(count: int) -> Callable[[Path, bytes], int]:
    """`Path.write_bytes` on a disk that takes `count` files and half of the next."""
    written = [0]

    def write_bytes(path: Path, data: bytes) -> int:
        written[0] += 1
        with path.open("wb") as file:
            if written[0] > count:
                file.write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            return file.write(data)

    return write_bytes


def test_a_full_disk_leaves_whole_files_and_names_the_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "write_bytes", disk_full_after(3))
    with pytest.raises(DumpError, match=r"cannot write .*0002-ttir-pass-1.ttir: No space left"):
        play(make(tmp_path), Compilation())
    (folder,) = tmp_path.iterdir()
    assert {path.name for path in folder.iterdir()} == {
        "compilation.json",
        "steps.jsonl",
        "0000-source.ttir",
        "0001-ttir-pass-0.ttir",
    }
    assert [step.name for step in read_steps(folder)] == ["source", "pass-0"]
    assert read_compilation(folder).kernel == "kernel"


def test_a_program_outlives_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(RecorderOptions(tmp_path), compiler="triton", fail_softly=True)
    monkeypatch.setattr(Path, "write_bytes", disk_full_after(2))
    play(recorder, Compilation())
    play(recorder, Compilation(key="cd" * 32))
    error = capsys.readouterr().err
    assert error.count("error: dump-ir: cannot write") == 1
    assert "0001-ttir-pass-0.ttir: No space left on device; no more is recorded" in error
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failing_dump_ends_the_compilation_of_a_kernel_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    monkeypatch.setattr(Path, "write_bytes", disk_full_after(5))
    with pytest.raises(DumpError, match="No space left on device"):
        record(dump)


def test_a_record_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    play(make(tmp_path), Compilation())
    (folder,) = tmp_path.iterdir()
    steps = read_steps(folder)
    file = folder / "steps.jsonl"
    file.write_text(file.read_text()[:-20])
    assert read_steps(folder) == steps[:-1]


def test_a_kernel_that_is_not_wanted_leaves_its_name(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    pass_file = tmp_path / "passes.py"
    pass_file.write_text(MARK_LOOPS)
    options = RecorderOptions(dump, kernels=re.compile("^other$"))
    compile_always(pass_file, Recorder(options, compiler="triton"))
    assert take_left_out(dump) == ["small_matmul"]
    assert list(dump.iterdir()) == []
    assert take_left_out(dump) == []
