"""Launching the small kernels on a GPU, and programs that do, for the tests of the front end."""

from __future__ import annotations

import importlib
import json
import operator
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontend_kernels import add_kernel
from triton import knobs

from tilepass.subjects.program import program_environment

BLOCK = 128
ON, OTHER = "rewrite-add", "rewrite-add{to=subf}"
COMMAND = "import sys; from tilepass.cli.main import main; sys.exit(main())"
LAUNCHING = str(Path(__file__).with_name("gpu_launch_program.py"))
INDUCTOR = str(Path(__file__).with_name("gpu_inductor_program.py"))

# Every kernel that stores floats stores them negated, which its results show; whoever compiles it
# leaves its process's number in a file.
NEGATE_STORES = """
import os
from dataclasses import dataclass

from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register
from tilepass.ir.engine import ir

STORES = ("tt.store", "tt.descriptor_store")

@register
class NegateStores(Pass):
    name = "negate-stores"
    anchor = Anchor.end_of("ttir")
    touches = STORES

    @dataclass(frozen=True)
    class Options:
        log: str = os.devnull

    def run(self, module, context):
        found = []
        def visit(operation):
            if operation.name in STORES and is_float(operation.operands[1].type):
                found.append(operation)
            return ir.WalkResult.ADVANCE
        module.operation.walk(visit)
        for store in found:
            value, place = store.operands[1], ir.InsertionPoint(store)
            with store.location, place:
                zero = ir.Operation.create(
                    "arith.constant",
                    results=[value.type],
                    attributes={"value": zero_of(value.type)},
                )
                negative = ir.Operation.create(
                    "arith.subf", results=[value.type], operands=[zero.results[0], value]
                )
            store.operands[1] = negative.results[0]
        with open(self.options.log, "a") as log:
            log.write(f"{os.getpid()}\\n")

def is_float(kind):
    return str(getattr(kind, "element_type", kind)) in ("f16", "bf16", "f32")

def zero_of(kind):
    if isinstance(kind, ir.RankedTensorType):
        return ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 0.0))
    return ir.FloatAttr.get(kind, 0.0)
"""

_APPLY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


@dataclass(frozen=True)
class Launched:
    """What a launch did: the operation that its results show, which is in the kernel's PTX too.

    `compilations` tells of each time that the launch went to Triton's compiler whether the disk
    cache had the kernel; it is empty where the kernel was in memory.
    """

    operation: str
    compilations: tuple[bool, ...]
    hash: str


def launch(kernel: Any = add_kernel) -> Launched:
    """Launch a kernel of frontend_kernels or an autotuner of one, and check what it wrote."""
    torch: Any = importlib.import_module("torch")
    x = torch.randn(BLOCK, generator=torch.Generator().manual_seed(0))
    x[0] = 2.0
    on_gpu = x.cuda()
    out = torch.full_like(on_gpu, float("nan"))
    with compilations() as seen:
        compiled = kernel[(1,)](on_gpu, out, BLOCK=BLOCK)
    name = getattr(kernel, "fn", kernel).__name__
    operation = _operation(name, x, out.cpu())
    assert f"\t{operation}.f32" in compiled.asm["ptx"].replace(".rn", "")
    return Launched(operation, tuple(seen), compiled.hash)


def _operation(name: str, x: Any, out: Any) -> str:
    """Which operation stands for the kernel's additions in its results."""
    found = {text: apply for text, apply in _APPLY.items() if _is(out, name, x, apply)}
    assert len(found) == 1, f"{name} wrote {out}"
    return next(iter(found))


def _is(out: Any, name: str, x: Any, apply: Callable[[Any, Any], Any]) -> bool:
    expected = apply(x, x.abs())
    if name == "calling_kernel":
        expected = apply(expected, x[0] * x[0].sqrt())
    return bool(((out - expected).abs() <= 1e-5 * expected.abs().max()).all())


@contextmanager
def compilations() -> Generator[list[bool]]:
    """Whether each compilation in the block was a hit in the disk cache."""
    seen: list[bool] = []

    def listen(*, cache_hit: bool, **rest: object) -> None:
        seen.append(cache_hit)

    compilation: Any = knobs.compilation
    with compilation.scope():
        compilation.listener = listen
        yield seen


def environment(folder: Path, pipeline: str = "", load: Iterable[Path] = ()) -> dict[str, str]:
    """A program's: with a pipeline in force unless it is empty, and caches in `folder`."""
    path = [os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TILEPASS", "TRITON_"))}
    base = {
        **kept,
        "PYTHONPATH": os.pathsep.join(path),
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }
    if not pipeline:
        return base
    return program_environment(base, pipeline, [str(file) for file in load], "none")


def run(
    arguments: Sequence[str | Path], variables: dict[str, str], status: int = 0
) -> list[dict[str, Any]]:
    """Run Python with `arguments`; returns what it printed in lines of JSON."""
    command = [sys.executable, *map(str, arguments)]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=240)
    assert result.returncode == status, f"{result.stdout}\n{result.stderr}"
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
