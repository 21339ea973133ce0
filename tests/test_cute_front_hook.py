"""Passes in the CuTe DSL: when they run, what they are given, and what is left of them."""

from __future__ import annotations

import os
import re
import shlex
import threading
from pathlib import Path
from typing import Any

import pytest
from cute_support import MMAS, MMAS_OF_ONE, PASSES, compiled_mmas, mmas_of

from tilepass.activate import enabled
from tilepass.cli.opt import main as opt
from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import AnchorError, PassFailure

pytestmark = pytest.mark.traces


def source_line(text: str, occurrence: int = 0) -> int:
    """The line of `cute_kernels.py` that holds `text`, counted from 1."""
    lines = Path(__file__).with_name("cute_kernels.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if text in line][occurrence]


def test_off_on_off() -> None:
    before = compiled_mmas()
    with enabled("drop-gemms", load=[PASSES]) as session:
        inside = compiled_mmas()
    assert (before, inside, compiled_mmas()) == (MMAS, MMAS_OF_ONE, MMAS)
    (remark,) = session.remarks
    assert remark.message == "a gemm is dropped"
    # Although the program asks for no line tables.
    assert remark.location is not None
    assert remark.location.file.endswith("cute_kernels.py")
    assert remark.location.line == source_line("cute.gemm(tiled_mma")


def test_a_pass_that_changes_nothing_leaves_the_binary(tmp_path: Path) -> None:
    from cute_kernels import compile_to_ptx

    folders = [tmp_path / name for name in ("stock", "looked-at")]
    for folder in folders:
        folder.mkdir()
    stock = compile_to_ptx(folders[0])
    with enabled("look-gemms", load=[PASSES], remarks="none") as session:
        assert compile_to_ptx(folders[1]) == stock
    # It looked: lowered, the two products are two loops; compiled, as many instructions as ours.
    messages = [remark.message for remark in session.remarks]
    assert messages == ["lowered to 2 loops of mma", f"compiled to {MMAS} mma"]


def test_what_was_said_is_said_again_for_a_module_that_is_known() -> None:
    said: list[list[str]] = []
    for _ in range(2):
        with enabled("drop-gemms{count=2}", load=[PASSES], remarks="none") as session:
            assert compiled_mmas() == 0
        said.append([remark.format() for remark in session.remarks])
    assert said[0] == said[1]
    assert len(said[0]) == 2


def test_blocks_replace_one_another() -> None:
    with enabled("drop-gemms", load=[PASSES]):
        with enabled(""):
            assert compiled_mmas() == MMAS
        assert compiled_mmas() == MMAS_OF_ONE
    assert compiled_mmas() == MMAS


def test_passes_of_both_compilers_in_one_pipeline() -> None:
    with enabled("flatten-loops,drop-gemms", load=[PASSES]) as session:
        assert compiled_mmas() == MMAS_OF_ONE
    assert session.pipeline.endswith("drop-gemms{count=1}@end:trace")


def test_nothing_is_patched_without_passes_for_cute() -> None:
    from cutlass.base_dsl.compiler import CompileCallable
    from cutlass.base_dsl.dsl import BaseDSL
    from cutlass.cutlass_dsl import CuTeDSL

    def state() -> list[Any]:
        dsl: Any = CuTeDSL._get_dsl()  # pyright: ignore[reportPrivateUsage]
        functions = [CompileCallable.__dict__["_compile"], BaseDSL.__dict__["_func"]]
        return [*functions, list(dsl._trace_finalize_hooks)]

    stock = state()
    assert stock[-1] == []
    with enabled("flatten-loops"):
        assert state() == stock
    with enabled("drop-gemms", load=[PASSES]):
        assert state() != stock
    assert state() == stock


def test_a_hook_of_the_program_runs_after_ours() -> None:
    from cute_kernels import fake_arguments, two_products
    from cutlass import cute

    seen: list[int] = []

    def look(owner: Any, module: Any, name: str) -> None:
        del owner, name
        seen.append(str(module).count("cute.gemm("))

    compile_: Any = cute.compile
    with enabled("drop-gemms", load=[PASSES], remarks="none"):
        compile_(two_products, *fake_arguments(), trace_finalize_hooks=look)
    assert seen == [1]


def test_invalid_ir_stops_compilation_and_can_be_replayed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        enabled("break-module", load=[PASSES]),
        pytest.raises(PassFailure, match="left invalid IR") as caught,
    ):
        compiled_mmas()
    assert compiled_mmas() == MMAS
    command = re.search(r"^replay: tilepass-opt (.*)$", str(caught.value), re.M)
    assert command is not None
    assert opt(shlex.split(command[1])) == 1
    assert "pass 'break-module' left invalid IR" in capsys.readouterr().err


def test_an_exception_of_a_pass_names_its_line() -> None:
    with (
        enabled("break-module{raises=true}", load=[PASSES]),
        pytest.raises(PassFailure, match=r"raised ValueError: as asked \(.*cute_passes.py:\d+"),
    ):
        compiled_mmas()


def test_there_is_one_place() -> None:
    with pytest.raises(AnchorError, match="has no place 'start:trace'; its place is end:trace"):
        enabled("drop-gemms@start:trace", load=[PASSES])


def test_a_pass_for_every_module_may_run_on_cutes() -> None:
    with enabled("test-round-trip@end:trace,drop-gemms", load=[PASSES]) as session:
        assert compiled_mmas() == MMAS_OF_ONE
    assert session.pipeline.startswith("test-round-trip@end:trace,")


def test_validation_does_not_reach_cute() -> None:
    with enabled("drop-gemms", load=[PASSES], validate=True, remarks="none") as session:
        pass
    (remark,) = session.remarks
    assert (remark.kind, remark.pass_name) == ("missed", "drop-gemms")
    assert "not validated" in remark.message


def test_threads_compile_one_after_the_other() -> None:
    """The DSL itself fails where two threads trace at a time."""
    from cute_kernels import fake_arguments, two_products
    from cutlass import cute

    compile_: Any = cute.compile
    compiled: list[Any] = []
    failures: list[BaseException] = []
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        try:
            compiled.extend(compile_(two_products, *fake_arguments()) for _ in range(2))
        except BaseException as error:
            failures.append(error)

    with enabled("drop-gemms", load=[PASSES], remarks="none"):
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert [mmas_of(one) for one in compiled] == [MMAS_OF_ONE] * 4


def test_locations_are_of_the_users_file() -> None:
    with enabled("drop-gemms{count=2}", load=[PASSES], remarks="none") as session:
        compiled_mmas()
    places = [remark.location for remark in session.remarks]
    lines = [source_line("cute.gemm(tiled_mma", occurrence) for occurrence in (0, 1)]
    assert [place.line for place in places if isinstance(place, SourceLocation)] == lines


def test_bitcode_that_kernels_call_is_linked_in_trials() -> None:
    """The DSL adds it to its options after the hook, from an attribute of the module."""
    from cute_kernels import fake_arguments, two_products
    from cutlass import cute

    from tilepass.frontends.cute.dsl import compile_pipeline
    from tilepass.ir.engine import ir

    pipelines: list[str] = []

    def look(owner: Any, module: Any, name: str) -> None:
        del name
        (kernels,) = (one for one in module.body.operations if one.operation.name == "gpu.module")
        for files in ([], ["a.bc", "b.bc", "a.bc"]):
            texts = [ir.StringAttr.get(file) for file in files]
            kernels.operation.attributes["link-libraries"] = ir.ArrayAttr.get(texts)
            pipelines.append(compile_pipeline(owner, module))
        del kernels.operation.attributes["link-libraries"]

    compile_: Any = cute.compile
    options = "--link-libraries given.bc"
    with pytest.raises(Exception, match=r"given\.bc"):
        compile_(two_products, *fake_arguments(), trace_finalize_hooks=look, options=options)
    compile_(two_products, *fake_arguments(), trace_finalize_hooks=look)
    found = [re.findall(r"link-libraries='([^']*)'", pipeline) for pipeline in pipelines]
    assert found == [["given.bc"], ["given.bc,a.bc,b.bc"], [], ["a.bc,b.bc"]]


def test_a_forked_child_can_compile_while_a_thread_of_its_parent_does() -> None:
    from tilepass.frontends.cute import hook

    lock: Any = hook._lock  # pyright: ignore[reportPrivateUsage]
    compiling, done = threading.Event(), threading.Event()

    def compile_slowly() -> None:
        with lock:
            compiling.set()
            done.wait(60)

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    compiling.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=60) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    done.set()
    thread.join()
    assert status == 0
