"""The right binary from every cache of Triton when pipelines come, go and change."""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import triton
from corpus.stand_in import Pointer
from frontend_kernels import add_kernel
from frontend_support import (
    REWRITE_ADD,
    compile_kernel,
    fake_driver,
    operation_of,
    write_rewrite,
)
from triton import knobs
from triton.runtime import _async_compile, autotuner, jit

from tilepass.activate import enabled
from tilepass.frontends import cache_key
from tilepass.subjects.program import program_environment

ON = "rewrite-add"
OTHER = "rewrite-add{to=subf}"


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty disk cache, empty in-memory caches, and a driver without a GPU."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    with fake_driver():
        add_kernel.device_caches.clear()
        yield
        add_kernel.device_caches.clear()


@pytest.fixture
def rewrite(tmp_path: Path) -> Path:
    return write_rewrite(tmp_path)


def launch() -> str:
    """Launch the kernel and say which operation it performs."""
    return operation_of(add_kernel[(1,)](Pointer(), Pointer(), BLOCK=128))


def test_off_on_off_in_memory(rewrite: Path) -> None:
    stock = add_kernel[(1,)](Pointer(), Pointer(), BLOCK=128).asm["cubin"]
    on, other = enabled(ON, load=[rewrite], remarks="none"), enabled(OTHER, remarks="none")
    for _ in range(2):
        assert launch() == "add"
        with on:
            assert launch() == "mul"
            with other:
                assert launch() == "sub"
                with enabled(""):
                    assert launch() == "add"
            assert launch() == "mul"
    assert add_kernel[(1,)](Pointer(), Pointer(), BLOCK=128).asm["cubin"] == stock


def test_off_on_off_on_disk(rewrite: Path) -> None:
    hits: list[bool] = []

    def listen(*, cache_hit: bool, **rest: object) -> None:
        hits.append(cache_hit)

    knobs.compilation.listener = listen
    try:
        for expected in (False, True):
            assert operation_of(compile_kernel()) == "add"
            with enabled(ON, load=[rewrite], remarks="none"):
                assert operation_of(compile_kernel()) == "mul"
            with enabled(OTHER, remarks="none"):
                assert operation_of(compile_kernel()) == "sub"
            assert hits == [expected] * 3
            hits.clear()
    finally:
        knobs.compilation.listener = None


def test_a_pipeline_that_changes_during_a_compilation(
    rewrite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another thread may do it, after the key has been made and before the stages are."""
    on, other = enabled(ON, load=[rewrite], remarks="none"), enabled(OTHER, remarks="none")
    compiler: Any = importlib.import_module("triton.compiler.compiler")
    original = compiler.get_cache_manager
    changes: list[Callable[[], object]] = []

    def get_cache_manager(key: str) -> Any:
        if changes:
            changes.pop()()
        return original(key)

    monkeypatch.setattr(compiler, "get_cache_manager", get_cache_manager)

    def leave_for_other() -> None:
        on.__exit__(None, None, None)
        other.__enter__()

    changes.append(on.__enter__)
    assert operation_of(compile_kernel()) == "add"
    changes.append(leave_for_other)
    assert operation_of(compile_kernel()) == "mul"
    changes.append(lambda: other.__exit__(None, None, None))
    assert operation_of(compile_kernel()) == "sub"
    assert operation_of(compile_kernel()) == "add"
    for activation, expected in ((on, "mul"), (other, "sub")):
        with activation:
            assert operation_of(compile_kernel()) == expected


def test_another_process_finds_the_right_binary(rewrite: Path) -> None:
    """On and off in turns, an option changed, the pass's file edited."""
    assert _in_process("", rewrite) == ("add", False)
    assert _in_process(ON, rewrite) == ("mul", False)
    assert _in_process(OTHER, rewrite) == ("sub", False)
    assert _in_process("", rewrite) == ("add", True)
    assert _in_process(ON, rewrite) == ("mul", True)
    rewrite.write_text(REWRITE_ADD.replace('f"arith.{self.options.to}"', '"arith.subf"'))
    assert _in_process(ON, rewrite) == ("sub", False)


def test_another_process_sees_an_edited_helper(rewrite: Path) -> None:
    """The pass's file stays; what it imports changes and changes back."""
    helper = rewrite.parent / "chosen_operation.py"
    text = REWRITE_ADD.replace('f"arith.{self.options.to}"', "chosen_operation.NAME")
    found = f"import sys\nsys.path.insert(0, {str(rewrite.parent)!r})\nimport chosen_operation\n"
    rewrite.write_text(found + text)
    for name, hit in (("mul", False), ("sub", False), ("mul", True)):
        helper.write_text(f'NAME = "arith.{name}f"\n')
        assert _in_process(ON, rewrite) == (name, hit)


def test_what_no_key_could_hold_is_not_stored(
    rewrite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that the pass imports while it runs, by a name that it makes then."""
    (rewrite.parent / "made_up.py").write_text('NAME = "arith.mulf"\n')
    imported = f"""
        import sys
        sys.path.insert(0, {str(rewrite.parent)!r})
        made_up = __import__("made" + "_up")
        found = []"""
    text = REWRITE_ADD.replace('f"arith.{self.options.to}"', "made_up.NAME")
    rewrite.write_text(text.replace("\n        found = []", imported))
    assert _in_process(ON, rewrite) == ("mul", False)
    assert _in_process(ON, rewrite) == ("mul", False)
    with enabled(ON, load=[rewrite]):
        assert operation_of(compile_kernel()) == "mul"
    assert "[rewrite-add] missed: imported made_up while it ran" in capsys.readouterr().err


def _in_process(pipeline: str, load: Path) -> tuple[str, bool]:
    """The operation of the binary that a new process gets, and whether it was in the cache."""
    program = (
        "from frontend_support import *\n"
        "from triton import knobs\n"
        "hits = []\n"
        "knobs.compilation.listener = lambda *, cache_hit, **rest: hits.append(cache_hit)\n"
        "compiled = compile_kernel()\n"
        "print(operation_of(compiled), *hits)\n"
    )
    with_tests = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    environment = program_environment(with_tests, pipeline, [str(load)], "none")
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    operation, hit = result.stdout.split()
    return operation, hit == "True"


def test_nothing_is_patched_outside(rewrite: Path) -> None:
    places = (knobs.runtime, triton.compiler.compiler, jit, jit.JITFunction, autotuner)
    before = [dict(vars(place)) for place in (*places, autotuner.Autotuner)]
    with enabled(ON, load=[rewrite]), enabled(OTHER), enabled(""):
        pass
    after = [dict(vars(place)) for place in (*places, autotuner.Autotuner)]
    # A knob that was never set is not in the instance; None is what its class says.
    after[0] = {key: value for key, value in after[0].items() if key in before[0] or value}
    assert after == before


def test_pipelines_can_be_left_in_any_order(rewrite: Path) -> None:
    first, second = enabled(ON, load=[rewrite], remarks="none"), enabled(OTHER, remarks="none")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert launch() == "sub"
    second.__exit__(None, None, None)
    assert launch() == "add"
    assert knobs.runtime.add_stages_inspection_hook is None


def test_preloading_does_not_mix_pipelines(rewrite: Path) -> None:
    """Specialization data names the in-memory key under which the kernel was recorded."""
    data: list[str] = []

    def record(*, compile: Any, **rest: Any) -> None:
        data.append(compile["specialization_data"])

    knobs.runtime.jit_post_compile_hook = record  # type: ignore[assignment]
    try:
        launch()
    finally:
        knobs.runtime.jit_post_compile_hook = None
    add_kernel.device_caches.clear()
    with enabled(ON, load=[rewrite], remarks="none"):
        assert operation_of(add_kernel.preload(data[0])) == "mul"
        assert launch() == "mul"
    assert launch() == "add"
    add_kernel.device_caches.clear()
    assert operation_of(add_kernel.preload(data[0])) == "add"
    assert len(add_kernel.device_caches[0][0]) == 1


def test_asynchronous_compilations_stay_with_their_pipeline(rewrite: Path) -> None:
    with (
        concurrent.futures.ThreadPoolExecutor(1) as executor,
        _async_compile.AsyncCompileMode(executor),
    ):
        kernels = [add_kernel.warmup(Pointer(), Pointer(), BLOCK=128, grid=(1,))]
        with enabled(ON, load=[rewrite], remarks="none"):
            kernels.append(add_kernel.warmup(Pointer(), Pointer(), BLOCK=128, grid=(1,)))
        kernels.append(add_kernel.warmup(Pointer(), Pointer(), BLOCK=128, grid=(1,)))
        results = [operation_of(kernel.result()) for kernel in kernels]
    assert results == ["add", "mul", "add"]


def test_autotuning_is_repeated_per_pipeline(rewrite: Path, tmp_path: Path) -> None:
    """Timings of one pipeline say nothing about another, in memory and on disk."""
    benchmarked: list[str] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        benchmarked.append(launch())
        return [float(len(benchmarked))] * 3

    def tuned() -> Any:
        configs = [triton.Config({}, num_warps=warps) for warps in (1, 2)]
        decorate = triton.autotune(configs, key=[], do_bench=bench, cache_results=True)
        return decorate(add_kernel)

    def run(tuner: Any) -> list[str]:
        benchmarked.clear()
        tuner[(1,)](Pointer(), Pointer(), BLOCK=128)
        return list(benchmarked)

    tuner = tuned()
    assert run(tuner) == ["add"] * 2
    assert run(tuner) == []
    with enabled(ON, load=[rewrite], remarks="none"):
        assert run(tuner) == ["mul"] * 2
        assert run(tuner) == []
        made_inside = tuned()
        assert run(made_inside) == []
    assert run(tuner) == []
    assert run(made_inside) == []
    assert run(tuned()) == []


def test_the_key_covers_what_changes_the_output(rewrite: Path) -> None:
    keys = {
        enabled(text, load=[rewrite]).key.key
        for text in (ON, OTHER, f"{ON}@start:ttgir", f"{ON},{ON}", f"{ON},{OTHER}", "")
    }
    assert len(keys) == 6
    assert enabled(ON).key == enabled("rewrite-add{to=mulf}").key
    assert enabled("").key == ("", "")
    rewrite.write_text(REWRITE_ADD + "# edited\n")
    assert enabled(ON, load=[rewrite]).key.key not in keys


@pytest.mark.parametrize("part", ["tool_hash", "_bindings_version"])
def test_the_key_covers_the_tool(part: str, rewrite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of tilepass or of the IR engine may do something else with the same pass."""
    before = enabled(ON, load=[rewrite]).key
    monkeypatch.setattr(cache_key, part, lambda: "another")
    after = enabled(ON).key
    assert after.key != before.key
    assert after.hash != before.hash
    assert enabled("").key == ("", "")


def test_specialization_data_is_json(rewrite: Path) -> None:
    """What Triton hands to its hooks under a pipeline can still be serialized."""
    seen: list[str] = []

    def record(*, compile: Any, **rest: Any) -> None:
        seen.append(compile["specialization_data"])

    knobs.runtime.jit_cache_hook = record  # type: ignore[assignment]
    try:
        with enabled(ON, load=[rewrite], remarks="none"):
            launch()
    finally:
        knobs.runtime.jit_cache_hook = None
    assert json.loads(seen[0])["signature"]["BLOCK"] == "constexpr"
