"""Real launches: the right binary, and the right results, whatever pipelines come and go."""

from __future__ import annotations

import concurrent.futures
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import frontend_kernels
import pytest
import triton
from frontend_kernels import add_kernel, calling_kernel
from frontend_support import REWRITE_ADD, write_rewrite
from gpu_support import (
    COMMAND,
    INDUCTOR,
    LAUNCHING,
    NEGATE_STORES,
    ON,
    OTHER,
    environment,
    launch,
    run,
)

from tilepass.activate import enabled

pytestmark = pytest.mark.gpu

gluon_kernel = cast("Any", frontend_kernels).gluon_kernel


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty disk cache, and nothing in memory."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    kernels = (add_kernel, calling_kernel, gluon_kernel)
    for kernel in kernels:
        kernel.device_caches.clear()
    yield
    for kernel in kernels:
        kernel.device_caches.clear()


@pytest.fixture
def rewrite(tmp_path: Path) -> Path:
    return write_rewrite(tmp_path)


def test_off_on_off_in_one_process(rewrite: Path) -> None:
    """From the compiler the first time, from memory the second; what memory lost, from disk."""
    on, other = enabled(ON, load=[rewrite], remarks="none"), enabled(OTHER, remarks="none")
    hashes: list[set[str]] = []
    for expected in ((False,), (), (True,)):
        if expected == (True,):
            add_kernel.device_caches.clear()
        add = launch()
        with on:
            mul = launch()
            with other:
                sub = launch()
                with enabled(""):
                    assert launch().operation == "add"
            mul_again = launch()
        add_again = launch()
        operations = [one.operation for one in (add, mul, sub, mul_again, add_again)]
        assert operations == ["add", "mul", "sub", "mul", "add"]
        assert [one.compilations for one in (add, mul, sub)] == [expected] * 3
        assert mul_again.compilations == add_again.compilations == ()
        hashes.append({add.hash, mul.hash, sub.hash})
    assert len(hashes[0]) == 3
    assert hashes[0] == hashes[1] == hashes[2]


def test_an_edited_pass_in_one_process(rewrite: Path) -> None:
    with enabled(ON, load=[rewrite], remarks="none"):
        assert launch().operation == "mul"
        rewrite.write_text(REWRITE_ADD.replace('f"arith.{self.options.to}"', '"arith.subf"'))
        assert launch().operation == "mul"
        with enabled(ON, load=[rewrite], remarks="none"):
            assert launch().operation == "sub"
        assert launch().operation == "mul"


def test_kernels_that_call_kernels(rewrite: Path) -> None:
    """One function is inlined, the other is called."""
    for pipeline, operation in (("", "add"), (ON, "mul"), (OTHER, "sub"), ("", "add")):
        with enabled(pipeline, load=[rewrite], remarks="none"):
            assert launch(calling_kernel).operation == operation


def test_autotuning_is_repeated_per_pipeline(rewrite: Path) -> None:
    calls: list[object] = []

    def bench(call: Any, quantiles: Any) -> Any:
        calls.append(call)
        return triton.testing.do_bench(call, warmup=1, rep=2, quantiles=quantiles)

    def benchmarked(operation: str) -> int:
        calls.clear()
        assert launch(tuner).operation == operation
        return len(calls)

    configs = [triton.Config({}, num_warps=warps) for warps in (1, 2)]
    tuner: Any = triton.autotune(configs, key=[], do_bench=bench)(add_kernel)
    assert [benchmarked("add") for _ in range(2)] == [2, 0]
    with enabled(ON, load=[rewrite], remarks="none"):
        assert [benchmarked("mul") for _ in range(2)] == [2, 0]
    assert benchmarked("add") == 0


def test_a_gluon_kernel(rewrite: Path) -> None:
    stock = launch(gluon_kernel)
    assert stock.operation == "add"
    with enabled(ON, load=[rewrite], remarks="none") as session:
        assert launch(gluon_kernel).operation == "add"
    assert "(gluon) has no place 'end:ttir'" in session.remarks[0].message
    with enabled(f"{ON}@end:ttgir", remarks="none"):
        assert launch(gluon_kernel).operation == "mul"
    assert launch(gluon_kernel).hash == stock.hash


def test_other_processes_with_one_disk_cache(rewrite: Path, tmp_path: Path) -> None:
    """Children that are forked or spawned too; then all from the cache; then the file edited."""

    def of(pipeline: str, *arguments: str) -> list[tuple[str, bool]]:
        lines = run([LAUNCHING, *arguments], environment(tmp_path, pipeline, [rewrite]))
        assert len({line["pid"] for line in lines}) == len(arguments) + 1
        return [(line["operation"], *line["compilations"]) for line in lines]

    with concurrent.futures.ThreadPoolExecutor() as threads:
        first = list(threads.map(of, ["", ON, OTHER]))
        assert first == [[("add", False)], [("mul", False)], [("sub", False)]]
        stock = threads.submit(of, "")
        children = threads.submit(of, ON, "fork", "spawn")
        assert stock.result() == [("add", True)]
        assert children.result() == [("mul", True)] * 3
        rewrite.write_text(REWRITE_ADD.replace('f"arith.{self.options.to}"', '"arith.subf"'))
        assert list(threads.map(of, ["", ON])) == [[("add", True)], [("sub", False)]]


def test_tilepass_run(rewrite: Path, tmp_path: Path) -> None:
    options = ["run", "-p", ON, "--load", rewrite, "--remarks", "none", "--"]
    program = [sys.executable, LAUNCHING, "exit=7"]
    (line,) = run(["-c", COMMAND, *options, *program], environment(tmp_path), status=7)
    assert line["operation"] == "mul"


Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def inductor(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """What programs with torch.compile printed, one after the other on the same caches."""
    folder = tmp_path_factory.mktemp("inductor")
    file, log = folder / "negate_stores.py", folder / "compiled-by.txt"
    file.write_text(NEGATE_STORES)
    pipeline = f"negate-stores{{log={log}}}"

    def inside(*states: str) -> Lines:
        on = f"on={pipeline.replace('compiled-by', 'inside')}"
        arguments = [on if state == "on" else state for state in states]
        variables = environment(folder / "inside") | {"PASS_FILE": str(file)}
        return run([INDUCTOR, *arguments], variables)

    def whole(own_pipeline: str) -> Lines:
        return run([INDUCTOR, "as-it-is"], environment(folder / "whole", own_pipeline, [file]))

    with concurrent.futures.ThreadPoolExecutor() as threads:
        off_on_off = threads.submit(inside, "off", "on", "off")
        on = threads.submit(whole, pipeline)
        found = {"on": on.result(), "log": [{"pids": log.read_text().split()}]}
        off, on_again = threads.submit(whole, ""), threads.submit(whole, pipeline)
        found["off on off"] = off_on_off.result()
        on_off_on = threads.submit(inside, "on", "off", "on")
        found |= {"off": off.result(), "on again": on_again.result()}
        return found | {"on off on": on_off_on.result()}


PLUS, MINUS = {"softmax": "+", "matmul": "+"}, {"softmax": "-", "matmul": "-"}


def results(lines: Lines) -> Lines:
    return [{name: line[name] for name in PLUS} for line in lines]


def test_torch_compile_off_on_off(inductor: dict[str, Lines]) -> None:
    """A reduction, and a matmul of which two templates compete; the caches are kept."""
    assert results(inductor["off on off"]) == [PLUS, MINUS, PLUS]
    assert results(inductor["on off on"]) == [MINUS, PLUS, MINUS]


def test_torch_compile_in_its_workers(inductor: dict[str, Lines]) -> None:
    """Under `tilepass run` the workers compile with the pipeline; then the caches answer."""
    assert results(inductor["on"]) == [MINUS]
    (line,), (log,) = inductor["on"], inductor["log"]
    assert set(log["pids"]) - {str(line["pid"])}
    assert results(inductor["off"]) == [PLUS]
    assert results(inductor["on again"]) == [MINUS]
