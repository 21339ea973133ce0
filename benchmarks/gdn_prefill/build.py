"""Compiling an arm in its own process, and loading what it left.

usage: python -m benchmarks.gdn_prefill.build REQUEST.json

The request names the FlashInfer folder, the type, the pipeline, the chip and the output stem; the
process writes STEM.o (a TVM-FFI object) and STEM.json (figures and remarks).
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gdn_prefill.arms import Arm
from tilepass.core.errors import TilepassError, report

SOURCE = Path(__file__).resolve().parents[2]
FUNCTION = "gdn_prefill"
# Newer torch offers TVM-FFI its tensors through one of these; for an older one TVM-FFI would build
# an extension with a compiler and a network that need not be there.
_EXCHANGES = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
_NO_EXTENSION = "TVM_FFI_DISABLE_TORCH_C_DLPACK"


@dataclass(frozen=True)
class Request:
    """One compilation."""

    folder: str
    dtype: str
    pipeline: str
    chip: str
    stem: str


@dataclass(frozen=True)
class Built:
    """What a compilation gave: the object file, and what can be read from the binary."""

    object_file: str
    mma_count: int
    trace_s: float
    compile_s: float
    cubin_sha256: str
    remarks: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """What a report keeps: nothing that names the machine's files."""
        kept = ("mma_count", "trace_s", "compile_s", "cubin_sha256")
        return {name: getattr(self, name) for name in kept}


def keep_tvm_ffi_from_building() -> None:
    """To be called before TVM-FFI is imported, here or in a child process."""
    import torch

    if not any(hasattr(torch.Tensor, name) for name in _EXCHANGES):
        os.environ.setdefault(_NO_EXTENSION, "1")


def start(request: Request) -> subprocess.Popen[bytes]:
    """Start a process that compiles; its messages go to STEM.log."""
    stem = Path(request.stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    question = stem.with_suffix(".request")
    question.write_text(json.dumps(asdict(request)))
    log = stem.with_suffix(".log").open("wb")
    command = [sys.executable, "-m", "benchmarks.gdn_prefill.build", str(question)]
    path = os.pathsep.join(filter(None, (str(SOURCE), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(command, stdout=log, stderr=log, cwd=stem.parent, env=environment)


def result(request: Request) -> Built:
    """What a finished process left. Raises TilepassError with the end of its log."""
    stem = Path(request.stem)
    answer = stem.with_suffix(".json")
    if not answer.is_file():
        log = stem.with_suffix(".log").read_text(errors="replace")
        raise TilepassError(f"compiling {stem.name} failed: {log.strip()[-1500:]}")
    content: dict[str, Any] = json.loads(answer.read_text())
    content["remarks"] = tuple(content["remarks"])
    return Built(**content)


def build_arms(
    arms: Sequence[Arm], dtypes: Sequence[str], folder: str, jobs: int
) -> dict[tuple[str, str], Built]:
    """Compile every (type, arm name) in `jobs` processes at a time; prints what came out.

    Raises TilepassError.
    """
    stems = Path(tempfile.mkdtemp(prefix="tilepass-gdn-"))
    wanted = [(dtype, arm) for dtype in dtypes for arm in arms]
    requests = {
        (dtype, arm.name): Request(
            str(Path(folder).resolve()), dtype, arm.pipeline, "sm_90a", str(stems / f"{at}" / "arm")
        )
        for at, (dtype, arm) in enumerate(wanted)
    }
    built: dict[tuple[str, str], Built] = {}
    keys = list(requests)
    for first in range(0, len(keys), jobs):
        running = {key: start(requests[key]) for key in keys[first : first + jobs]}
        for key, process in running.items():
            process.wait()
            built[key] = result(requests[key])
            figures = built[key]
            print(
                f"{key[0]:5}{key[1]:32} {figures.mma_count} mma.sync, {figures.cubin_sha256}, "
                f"trace {figures.trace_s} s, compile {figures.compile_s} s",
                flush=True,
            )
    return built


def load(built: Built, copies: int) -> list[Any]:
    """Load an object several times: each has its code at another address of the GPU.

    A kernel of 130 KB of code runs up to 1 % faster or slower by where it lies.
    """
    cute: Any = importlib.import_module("cutlass.cute")
    functions: list[Any] = []
    for index in range(copies):
        path = Path(built.object_file)
        copy = path.with_name(f"{path.stem}-{os.getpid()}-{index}-{time.monotonic_ns()}.o")
        copy.write_bytes(path.read_bytes())
        module = cute.runtime.load_module(str(copy), enable_tvm_ffi=True)
        functions.append(getattr(module, FUNCTION))
    return functions


def compile_arm(request: Request) -> Built:
    """Compile in this process. Raises TilepassError."""
    import hashlib

    import torch

    from benchmarks.gdn_prefill.source import load_class
    from benchmarks.gdn_prefill.workload import Inputs, case
    from tilepass.activate import enabled

    cutlass: Any = importlib.import_module("cutlass")
    cute: Any = importlib.import_module("cutlass.cute")
    element = {"bf16": cutlass.BFloat16, "f16": cutlass.Float16}[request.dtype]
    kernel = load_class(Path(request.folder))(True, True, True, False, element)
    # TVM-FFI takes tensors of the device that it was compiled for, and no others.
    device = "cuda" if torch.cuda.is_available() else "cpu"
    inputs = Inputs(case(2, 128, 4), request.dtype, device)
    arguments = inputs.arguments(inputs.new_outputs(), "compile")
    options = (
        cute.EnableTVMFFI(True),
        cute.GPUArch(request.chip),
        cute.KeepPTX(True),
        cute.KeepCUBIN(True),
    )
    traced: list[float] = []

    def note_time(*_: object) -> None:
        traced.append(time.perf_counter())

    begun = time.perf_counter()
    hook = {"trace_finalize_hooks": note_time}
    if request.pipeline:
        with enabled(request.pipeline, remarks="none") as session:
            compiled = cute.compile[options](kernel, *arguments, **hook)
        remarks = tuple(remark.format() for remark in session.remarks)
    else:
        compiled, remarks = cute.compile[options](kernel, *arguments, **hook), ()
    ended = time.perf_counter()
    compiled.export_to_c(f"{request.stem}.o", function_name=FUNCTION)
    cubin = content_of(compiled.__cubin__)
    return Built(
        object_file=f"{request.stem}.o",
        mma_count=content_of(compiled.__ptx__).count(b"mma.sync"),
        trace_s=round(traced[0] - begun, 2),
        compile_s=round(ended - traced[0], 2),
        cubin_sha256=hashlib.sha256(cubin).hexdigest()[:16],
        remarks=remarks,
    )


def content_of(kept: str | bytes) -> bytes:
    """PTX or cubin that the DSL keeps as content or as the path of a file."""
    if isinstance(kept, bytes):
        return kept
    return Path(kept).read_bytes() if len(kept) < 4096 else kept.encode()


def main() -> int:
    """Compile what a request file asks for."""
    question = Path(sys.argv[1])
    request = Request(**json.loads(question.read_text()))
    try:
        built = compile_arm(request)
    except TilepassError as error:
        print(report(error), file=sys.stderr)
        return 1
    Path(f"{request.stem}.json").write_text(json.dumps(asdict(built)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
