"""torch.compile under a pipeline: Inductor's keys, and compilation in its worker processes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from frontend_support import write_rewrite

from tilepass.activate import enabled
from tilepass.subjects.program import program_environment

pytest.importorskip("torch")

# A driver without a GPU for this process and its workers: torch makes Triton's active driver
# from the backend whose `is_active` says so.
SITECUSTOMIZE = """
from tilepass.after_import import AfterImport

def fake():
    import triton
    from corpus import stand_in
    class Driver(stand_in.Driver):
        @staticmethod
        def is_active():
            return True
    nvidia = triton.backends.backends["nvidia"]
    triton.backends.backends["nvidia"] = type(nvidia)(nvidia.compiler, Driver)

AfterImport("triton", fake)
"""

# What Inductor generates for a pointwise operation, and how it hands it to its workers.
PROGRAM = '''
import functools
import os
import torch
from torch._inductor.async_compile import (
    AsyncCompile,
    _load_triton_kernel_from_source,
    _worker_compile_triton,
)

SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import AutotuneHint, DeviceProperties

triton_helpers.set_driver_to_gpu()

@triton_heuristics.pointwise(
    size_hints={"x": 128},
    filename=__file__,
    triton_meta={
        "signature": {
            "in_ptr0": "*fp32", "out_ptr0": "*fp32", "xnumel": "i32", "XBLOCK": "constexpr",
        },
        "device": DeviceProperties(
            type="cuda", index=0, multi_processor_count=132, cc=90, major=9, warp_size=32,
            regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
            max_threads_per_block=1024,
        ),
        "constants": {},
        "configs": [{}],
    },
    inductor_meta={"kernel_name": "triton_add", "backend_hash": "0", "autotune_hints": set()},
)
@triton.jit
def triton_add(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    offsets = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    x = tl.load(in_ptr0 + offsets, offsets < xnumel)
    tl.store(out_ptr0 + offsets, x + tl.abs(x), offsets < xnumel)
"""

if __name__ == "__main__":
    pool = AsyncCompile.process_pool()
    load = functools.partial(_load_triton_kernel_from_source, "triton_add", SOURCE)
    environment = {"TRITON_CACHE_DIR": os.environ["TRITON_CACHE_DIR"]}
    pool.submit(_worker_compile_triton, load, environment, {}).result(timeout=3600)
'''


def graph_key() -> str:
    """Inductor's key of a compiled graph."""
    torch: Any = importlib.import_module("torch")
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    graph = torch.fx.Graph()
    graph.output(graph.placeholder("x"))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    return codecache.compiled_fx_graph_hash(module, [], {}, [])[0]


@pytest.fixture
def rewrite(tmp_path: Path) -> Path:
    return write_rewrite(tmp_path)


def test_graphs_and_tuning_results_are_kept_apart(rewrite: Path) -> None:
    config: Any = importlib.import_module("torch._inductor.config")
    module: Any = importlib.import_module("torch.utils._triton")
    importlib.import_module("torch._inductor.codecache")
    stock, threads, hasher = graph_key(), config.compile_threads, module.triton_hash_with_backend
    on, other = enabled("rewrite-add", load=[rewrite]), enabled("rewrite-add{to=subf}")
    with on:
        first = graph_key()
        assert config.compile_threads == 1
        assert module.triton_hash_with_backend is not hasher
        with other:
            second = graph_key()
            with enabled(""):
                assert graph_key() == stock
    with on:
        assert graph_key() == first
    assert len({stock, first, second}) == 3
    assert graph_key() == stock
    assert config.compile_threads == threads
    assert module.triton_hash_with_backend is hasher


def test_custom_passes_of_the_user_stay(rewrite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = importlib.import_module("torch._inductor.config")
    graph_passes: Any = importlib.import_module("torch._inductor.custom_graph_pass")
    called: list[object] = []

    class OfUser(graph_passes.CustomGraphPass):
        def __call__(self, graph: object) -> None:
            called.append(graph)

        def uuid(self) -> str:
            return "user"

    own = OfUser()
    with config.patch(joint_custom_pre_pass=own):
        alone = graph_key()
        with enabled("rewrite-add", load=[rewrite]):
            assert own in graph_passes.get_custom_graph_passes(config.joint_custom_pre_pass)
            assert graph_key() != alone
        # Older versions of torch take one pass, not a list.
        monkeypatch.delattr(graph_passes, "get_custom_graph_passes")
        with enabled("rewrite-add"):
            config.joint_custom_pre_pass("a graph")
            assert graph_key() != alone
        assert config.joint_custom_pre_pass is own
    assert called == ["a graph"]


def test_compiled_functions_are_compiled_again(rewrite: Path) -> None:
    torch: Any = importlib.import_module("torch")
    compilations: list[object] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compilations.append(graph)
        return graph.forward

    def increment(x: Any) -> Any:
        return x + 1

    compiled = torch.compile(increment, backend=backend)
    x = torch.zeros(2)

    def times() -> int:
        compiled(x)
        compiled(x)
        return len(compilations)

    assert times() == 1
    with enabled("rewrite-add", load=[rewrite]):
        assert times() == 2
        with enabled("rewrite-add"):
            assert times() == 2
    assert times() == 3


def test_workers_compile_with_the_pipeline(rewrite: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    program, cache = tmp_path / "program.py", tmp_path / "cache"
    program.write_text(PROGRAM)
    base = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.path.dirname(__file__)]),
        "TRITON_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }
    environment = program_environment(base, "rewrite-add", [str(rewrite)], "passed")
    command = [sys.executable, str(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    compiled = [path.read_text() for path in cache.rglob("*.ttir")]
    assert compiled, result.stderr
    assert all("arith.mulf" in text and "arith.addf" not in text for text in compiled)
