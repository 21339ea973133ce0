"""Where passes run, what observers see, and what is said when something is wrong."""

from __future__ import annotations

import concurrent.futures
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import frontend_kernels
import pytest
import triton
from frontend_kernels import add_kernel, calling_kernel, loop_kernel
from frontend_support import (
    GFX942,
    REWRITE_ADD,
    SM75,
    SM90,
    SM100,
    Recorder,
    compile_kernel,
    operation_of,
    write_pass,
)

from tilepass.activate import enabled
from tilepass.core.errors import AnchorError, OptionError, PassFailure, TilepassError
from tilepass.core.versions import triton_version
from tilepass.frontends.observing import Compilation

SINCE_3_9 = triton_version().version >= (3, 9)
gluon_kernel = cast("Any", frontend_kernels).gluon_kernel
gluon_wave64_kernel = cast("Any", frontend_kernels).gluon_wave64_kernel
# What a stage leaves for the next, and the code that is generated in the end.
RESULTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """A pass `idle` that goes over the bridge and does nothing, at the end of ttir."""
    return write_pass(tmp_path, "idle", "pass")


def results(compiled: Any) -> dict[str, str]:
    return {name: compiled.asm[name] for name in RESULTS if name in compiled.asm}


def own_places(recorder: Recorder, name: str) -> list[tuple[str, str, str]]:
    """(stage, Triton's pass before, Triton's pass after) of each run of a Python pass."""
    passes = [("", "", ""), *recorder.passes, ("", "", "")]
    return [
        (stage, passes[index - 1][1], passes[index + 1][1])
        for index, (stage, text, origin) in enumerate(passes)
        if origin == "tilepass" and text == name
    ]


@pytest.mark.parametrize(
    ("anchor", "expected"),
    [
        ("start:ttir", ("ttir", "", "inline")),
        ("end:ttir", ("ttir", "triton-loop-unroll", "convert-triton-to-tritongpu")),
        ("start:ttgir", ("ttgir", "triton-loop-unroll", "convert-triton-to-tritongpu")),
        ("after:triton-combine", ("ttir", "triton-combine", "triton-reorder-broadcast")),
        ("before:triton-combine", ("ttir", "canonicalize", "triton-combine")),
        ("before:canonicalize#1", ("ttgir", "tritongpu-fuse-nested-loops", "canonicalize")),
        ("after:canonicalize#1", ("ttgir", "canonicalize", "triton-licm")),
        (
            "before:convert-scf-to-cf",
            ("llir", "tritongpu-allocate-warp-groups", "convert-scf-to-cf"),
        ),
    ],
)
def test_a_pass_runs_at_its_anchor(idle: Path, anchor: str, expected: tuple[str, str, str]) -> None:
    recorder = Recorder()
    with enabled(f"idle@{anchor}", load=[idle], observers=[recorder]):
        compile_kernel()
    assert own_places(recorder, "idle") == [expected]
    assert recorder.indices == list(range(len(recorder.passes)))


def test_passes_at_one_place_run_in_the_order_of_the_pipeline(tmp_path: Path) -> None:
    files = [
        write_pass(tmp_path, f"pass-{letter}", "pass", "after:triton-combine") for letter in "abc"
    ]
    for order in ("cab", "bca"):
        recorder = Recorder()
        pipeline = ",".join(f"pass-{letter}" for letter in order)
        with enabled(f"{pipeline},pass-a@before:triton-combine", load=files, observers=[recorder]):
            compile_kernel()
        ran = [text for _, text, origin in recorder.passes if origin == "tilepass"]
        assert ran == ["pass-a", *(f"pass-{letter}" for letter in order)]


@pytest.mark.parametrize("target", [SM90, SM100, GFX942], ids=str)
@pytest.mark.parametrize("kernel", [calling_kernel, loop_kernel, gluon_kernel])
def test_the_code_is_that_of_stock_triton(idle: Path, kernel: Any, target: Any) -> None:
    """With observers, so pass by pass; and with a trip over the bridge after every pass."""
    if kernel is gluon_kernel and target is GFX942:
        kernel = gluon_wave64_kernel
    stock = results(compile_kernel(kernel, target))
    recorder = Recorder()
    with enabled("", observers=[recorder]):
        assert results(compile_kernel(kernel, target)) == stock
    with enabled("idle@start:ttgir,idle@after:*", load=[idle]):
        assert results(compile_kernel(kernel, target)) == stock
    for stage in stock:
        if stage in recorder.stages:
            assert recorder.stages[stage] == stock[stage]
    assert recorder.compilations[0].kernel == kernel.__name__
    assert str(recorder.compilations[0].target) == f"{target.backend}:{target.arch}"


def test_threads_compile_the_same_code(idle: Path) -> None:
    """Four at a time, each with passes and an observer of its own calls."""
    kernels = [add_kernel, calling_kernel, loop_kernel, gluon_kernel]
    stock = [results(compile_kernel(kernel)) for kernel in kernels]
    threads: dict[str, set[int]] = {}

    class ByThread(Recorder):
        def begin(self, compilation: Compilation, source: Callable[[], str]) -> None:
            threads.setdefault(compilation.key, set()).add(threading.get_ident())

    with (
        enabled("idle@after:*", load=[idle], observers=[ByThread()]),
        concurrent.futures.ThreadPoolExecutor(4) as executor,
    ):
        for _ in range(2):
            compiled = executor.map(compile_kernel, kernels)
            assert [results(one) for one in compiled] == stock
    assert len(threads) == 4


def test_every_means_every_pass_of_the_mlir_stages(idle: Path) -> None:
    recorder = Recorder()
    with enabled("idle@after:*", load=[idle], observers=[recorder]):
        compile_kernel()
    mlir = [origin for stage, _, origin in recorder.passes if stage != "llir"]
    assert mlir == ["triton", "tilepass"] * (len(mlir) // 2)
    assert {origin for stage, _, origin in recorder.passes if stage == "llir"} == {"triton"}


def test_observers_see_every_stage() -> None:
    recorder = Recorder()
    with enabled("", observers=[recorder]):
        compiled = compile_kernel()
    assert list(recorder.stages) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert recorder.stages["cubin"] == compiled.asm["cubin"]
    assert recorder.texts[0] == compiled.asm["source"]
    assert recorder.compilations[0].key == compiled.hash
    assert recorder.compilations[0].options["num_warps"] == 4


def test_observers_of_outer_blocks_go_on_looking(tmp_path: Path) -> None:
    rewrite = tmp_path / "rewrite_add.py"
    rewrite.write_text(REWRITE_ADD)
    outer, inner = Recorder(), Recorder()
    with enabled("rewrite-add", load=[rewrite], observers=[outer], remarks="none") as session:
        with enabled("rewrite-add{to=subf}", observers=[inner], remarks="none") as nested:
            assert operation_of(compile_kernel()) == "sub"
        assert outer.passes == inner.passes
        assert operation_of(compile_kernel()) == "mul"
    assert len(outer.compilations) == 2
    assert len(inner.compilations) == 1
    assert [remark.message for remark in session.remarks] == ["rewrote to mulf"]
    assert [remark.message for remark in nested.remarks] == ["rewrote to subf"]


def test_remarks_go_to_stderr_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite = tmp_path / "rewrite_add.py"
    rewrite.write_text(REWRITE_ADD)
    with enabled("rewrite-add,rewrite-add", load=[rewrite], remarks="all"):
        compile_kernel()
        compile_kernel()
    assert capsys.readouterr().err == "remark: [rewrite-add] passed: rewrote to mulf\n"
    with pytest.raises(OptionError, match=r"'mised' is not one of .*; did you mean 'missed'"):
        enabled("", remarks="mised")


@pytest.mark.parametrize(
    ("anchor", "message"),
    [
        ("start:ptx", r"no place 'start:ptx'; the places at stages are start:ttir, .*end:ttgir"),
        ("end:llir", "no place 'end:llir'"),
        ("after:triton-combin", r"did you mean 'triton-combine'.*\n  ttir: inline, "),
        ("before:cse#9", r"'cse' runs \d time\(s\); the passes that run here are"),
    ],
)
def test_a_missing_anchor_is_an_error(idle: Path, anchor: str, message: str) -> None:
    with enabled(f"idle@{anchor}", load=[idle]), pytest.raises(AnchorError, match=message):
        compile_kernel()
    with enabled(f"idle@{anchor}?", load=[idle], remarks="all") as session:
        compile_kernel()
    assert session.remarks == []


def test_a_pass_of_another_backend_is_a_missing_anchor(idle: Path) -> None:
    with enabled("idle@before:triton-nvidia-tma-lowering", load=[idle]):
        compile_kernel()
        with pytest.raises(AnchorError, match="for hip:gfx942"):
            compile_kernel(target=GFX942)


def test_a_target_without_the_place_of_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said once a compilation, which goes on: nobody asked for that place."""
    with enabled("flatten-loops"):
        compile_kernel(target=SM75)
        compile_kernel(target=GFX942)
    said = capsys.readouterr().err
    assert said.count("did not run") == 1
    assert "for cuda:75 (triton) has no place 'before:tritongpu-fuse-nested-loops'" in said


def test_a_gluon_kernel_skips_passes_without_a_place(
    idle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder()
    pipeline = "idle,idle@end:ttgir,idle@after:gluon-inline,idle@before:tritongpu-coalesce"
    with enabled(pipeline, load=[idle], observers=[recorder]) as session:
        compile_kernel(gluon_kernel)
    assert [place[0] for place in own_places(recorder, "idle")] == ["ttgir"] * 2
    messages = [remark.message for remark in session.remarks]
    assert len(messages) == 2
    assert "(gluon) has no place 'end:ttir'" in messages[0]
    assert "(gluon) has no place 'before:tritongpu-coalesce'" in messages[1]
    assert capsys.readouterr().err.count("did not run") == 2
    assert ("glir" in recorder.stages) == SINCE_3_9


def test_an_ir_file_starts_after_its_stage(idle: Path, tmp_path: Path) -> None:
    file = tmp_path / "kernel.ttgir"
    file.write_text(compile_kernel().asm["ttgir"])
    pipeline = "idle@before:triton-combine,idle@before:convert-scf-to-cf,idle@end:ttgir"
    recorder = Recorder()
    with enabled(pipeline, load=[idle], observers=[recorder], remarks="none") as session:
        triton.compile(str(file), target=SM90)
    assert [place[0] for place in own_places(recorder, "idle")] == ["llir"]
    left_out, no_place = (remark.message for remark in session.remarks)
    assert left_out == "did not run: the compilation starts after stage 'ttgir'"
    assert "no place 'before:triton-combine'" in no_place
    # No Triton has such a pass, whatever it starts from.
    unknown = enabled("idle@before:triton-combin", load=[idle])
    with unknown, pytest.raises(AnchorError, match="did you mean"):
        triton.compile(str(file), target=SM90)


def test_a_replaced_stage_keeps_its_start_and_end(idle: Path) -> None:
    """Someone else's hook puts its own functions into the stage table."""
    ran: list[str] = []

    def foreign(backend: Any, stages: Any, options: Any, language: Any, capability: Any) -> None:
        original = stages["ttir"]

        def stage(module: Any, metadata: Any) -> Any:
            ran.append("foreign")
            return original(module, metadata)

        stages["ttir"] = stage

    def foreign_hook(*arguments: Any) -> Any:
        return foreign(*arguments) if arguments else ("-foreign", "foreign")

    recorder = Recorder()
    hooked: Any = triton.knobs.runtime
    hooked.add_stages_inspection_hook = foreign_hook
    try:
        with enabled("idle", load=[idle], observers=[recorder]):
            compile_kernel()
            if SINCE_3_9:
                key, in_memory = hooked.add_stages_inspection_hook()
                assert key == "-foreign"
                assert in_memory.startswith("foreign")
                assert in_memory != "foreign"
        assert hooked.add_stages_inspection_hook is foreign_hook
        reason = "'ttir' has been replaced by another hook"
        with enabled("idle@after:triton-combine"), pytest.raises(AnchorError, match=reason):
            compile_kernel()
    finally:
        hooked.add_stages_inspection_hook = None
    assert ran == ["foreign"] * 2
    assert [text for stage, text, _ in recorder.passes if stage == "ttir"] == ["idle"]


def test_a_hook_that_is_set_later_is_noticed(idle: Path) -> None:
    hooked: Any = triton.knobs.runtime
    activation = enabled("idle", load=[idle])
    activation.__enter__()
    hooked.add_stages_inspection_hook = None
    with pytest.raises(TilepassError, match="was replaced while a pipeline was enabled"):
        activation.__exit__(None, None, None)
    assert hooked.add_stages_inspection_hook is None


def test_a_failing_pass_is_named(tmp_path: Path) -> None:
    file = write_pass(tmp_path, "failing", "raise ValueError('no luck')")
    with enabled("failing", load=[file]), pytest.raises(PassFailure) as caught:
        compile_kernel()
    assert "pass 'failing'" in str(caught.value)
    assert "no luck" in str(caught.value)


def test_a_pass_that_leaves_no_kernel(tmp_path: Path) -> None:
    body = "for view in list(module.body.operations): view.operation.erase()"
    file = write_pass(tmp_path, "clearing", body)
    message = (
        "^pass 'clearing' left no kernel: the module has no public tt.func any more\nreproducer"
    )
    with enabled("clearing", load=[file]), pytest.raises(PassFailure, match=message):
        compile_kernel()


def test_a_failure_of_triton_after_a_pass_names_both(tmp_path: Path) -> None:
    body = """
        found = []
        def visit(operation):
            if operation.name == "math.absf":
                found.append(operation)
            return ir.WalkResult.ADVANCE
        module.operation.walk(visit)
        for absolute in found:
            cube_root = ir.Operation.create(
                "math.cbrt",
                results=[absolute.results[0].type],
                operands=[absolute.operands[0]],
                loc=absolute.location,
                ip=ir.InsertionPoint(absolute),
            )
            absolute.results[0].replace_all_uses_with(cube_root.results[0])
"""
    file = write_pass(tmp_path, "cube-roots", body)
    with enabled("cube-roots", load=[file]), pytest.raises(PassFailure) as caught:
        compile_kernel()
    message = str(caught.value)
    assert message.startswith(
        "pass 'convert-triton-to-tritongpu' failed on the IR that cube-roots@end:ttir left\n"
    )
    assert "failed to legalize operation 'math.cbrt'" in message
    reproducer = Path(message.partition("reproducer: ")[2].splitlines()[0])
    arguments = shlex.split(message.partition("replay: tilepass-opt ")[2].splitlines()[0])
    program = "from tilepass.cli.opt import main; raise SystemExit(main())"
    command = [sys.executable, "-c", program, *arguments]
    replay = subprocess.run(command, capture_output=True, text=True)
    reproducer.unlink()
    assert replay.returncode == 1
    assert "failed to legalize operation 'math.cbrt'" in replay.stderr


def test_stock_failures_are_left_as_they_are() -> None:
    """A program may handle Triton's own exceptions; a pipeline that changed nothing keeps them."""
    code = (
        "from frontend_support import *\n"
        "from tilepass.activate import enabled\n"
        "with enabled('', observers=[Recorder()]):\n"
        "    try: compile_kernel(num_warps=3)\n"
        "    except AssertionError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    assert result.stdout == "num_warps must be a power of 2\n", result.stderr
