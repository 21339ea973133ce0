"""Compile a persistent matmul with `flatten-loops` off and on, and show what the pass changed.

Usage: .venv/bin/python scripts/demo.py [--shape MxNxK]

Without a GPU both variants are compiled for sm_90, and the kernel's source is checked on the CPU.
With one (sm_90 or later) they are compiled for it, launched, checked and timed against each other.
Exits non-zero if anything is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget

from tilepass.activate import enabled
from tilepass.binary.artifacts import artifacts_of
from tilepass.binary.figures import KernelFigures, kernel_figures
from tilepass.core.errors import TilepassError
from tilepass.core.remarks import Remark
from tilepass.dump.diff import align
from tilepass.dump.ir_text import essence, without_locations
from tilepass.frontends.observing import Compilation, Origin, StageObserver
from tilepass.kernels import get_workload

SOURCE = Path(__file__).resolve().parents[1]
KERNEL = "persistent_matmul_triton"
OFF, ON = "flatten-loops{mode=off}", "flatten-loops{mode=on}"
HOPPER = 90
# Whole tiles, partial tiles, one tile, nothing to sum, and fewer tiles than programs: [M, N, K].
CPU_SHAPES = ([256, 256, 128], [200, 328, 72], [64, 64, 64], [128, 128, 0], [130, 72, 200])


class AfterPass(StageObserver):
    """Keeps the IR that our pass leaves."""

    text = ""

    def begin(self, compilation: Compilation, source: Callable[[], str]) -> None:
        pass

    def after_pass(
        self,
        stage: str,
        index: int,
        pass_text: str,
        origin: Origin,
        module_text: Callable[[], str],
    ) -> None:
        if origin == "tilepass":
            self.text = module_text()

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None:
        pass


@dataclass(frozen=True)
class Variant:
    """The kernel as one pipeline leaves it."""

    pipeline: str
    after_pass: str
    figures: KernelFigures
    remarks: tuple[Remark, ...]


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text}", flush=True)


def gpu() -> tuple[str, int] | None:
    """Name and architecture of the first GPU (90 for sm_90), or None."""
    import torch

    if not torch.cuda.is_available():
        return None
    major, minor = torch.cuda.get_device_capability()
    return torch.cuda.get_device_name(), 10 * major + minor


def compile_variant(pipeline: str, arch: int) -> Variant:
    """Compile the kernel, whose author did not ask for flattening, through a pipeline."""
    workload = get_workload(KERNEL)
    config = workload.with_fields(workload.default_config, {"flatten": False})
    seen = AfterPass()
    with enabled(pipeline, remarks="none", observers=[seen]) as session:
        compiled = workload.compile(config, GPUTarget("cuda", arch, 32))
    figures = kernel_figures(artifacts_of(compiled))
    return Variant(pipeline, seen.text, figures, tuple(session.remarks))


def show_difference(before: str, after: str) -> None:
    """Print what differs, two lines around it and all between; names of values do not count."""
    left, right = (without_locations(text).splitlines() for text in (before, after))
    lines: list[str] = []
    for block in align(left, right):
        there = right[block.right : block.right_end]
        if block.equal:
            lines += [f"  {line}" for line in there]
        else:
            lines += [f"- {line}" for line in left[block.left : block.left_end]]
            lines += [f"+ {line}" for line in there]
    changed = [number for number, line in enumerate(lines) if line[0] in "-+"]
    print(*lines[max(0, changed[0] - 2) : changed[-1] + 3] if changed else ["no change"], sep="\n")


def show_figures(variants: list[Variant]) -> None:
    """Print the static figures side by side."""
    rows: list[tuple[str, list[Any]]] = [
        ("registers per thread", [v.figures.registers for v in variants]),
        ("spilled bytes per thread", [v.figures.spill_store_bytes for v in variants]),
        ("shared memory, bytes", [shared_bytes(v.figures) for v in variants]),
    ]
    families = [v.figures.families for v in variants]
    rows += [(f"{f} instructions", [c[f] for c in families]) for f in ("HGMMA", "UTMA", "BAR")]
    print(f"{'':32}" + "".join(f"{v.pipeline:>26}" for v in variants))
    for label, values in rows:
        print(f"{label:32}" + "".join(f"{value:>26}" for value in values))


def shared_bytes(figures: KernelFigures) -> int:
    """Shared memory of a block: what the binary holds, and what a launch asks for on top."""
    return figures.static_shared_bytes + (figures.shared_bytes or 0)


def check_what_changed(off: Variant, on: Variant) -> None:
    """The pass may set `tt.flatten` and clamp loops' bounds (`arith.maxsi`), and nothing else.

    Raises TilepassError otherwise.
    """
    before, after = (operations(variant.after_pass) for variant in (off, on))
    added, removed = after - before, before - after
    if removed or any("arith.maxsi" not in operation for operation in added):
        raise TilepassError(f"the pass removed {list(removed)} and added {list(added)}")
    if off.figures.assembly_hash == on.figures.assembly_hash:
        raise TilepassError("the pass made no difference to the machine code")
    clamped = ", and bounds clamped by arith.maxsi, which keeps the loops' trips" if added else ""
    print(f"ok: what the pass leaves differs in tt.flatten{clamped}; all else is there in both")


def operations(text: str) -> Counter[str]:
    """The operations of a module, values without their numbers and `tt.flatten` left out."""
    alone = re.sub(r" \{tt\.flatten\}|, tt\.flatten\b|\btt\.flatten, ", "", text)
    return Counter(map(essence, without_locations(alone).splitlines()))


def check_source_on_cpu() -> None:
    """Run the kernel's source in Triton's interpreter and compare with the fp32 reference.

    Raises TilepassError where a result is wrong.
    """
    tile = {"block-m": "64", "block-n": "64", "block-k": "32", "programs": "3"}
    cases = [
        [KERNEL, shape, {**tile, "flatten": flatten}, 0]
        for shape in CPU_SHAPES
        for flatten in ("false", "true")
    ]
    # A separate process: `@triton.jit` decides at import whether it interprets.
    result = subprocess.run(
        [sys.executable, str(SOURCE / "tests" / "kernels_interpreter.py")],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode != 0 or len(answers) != len(cases):
        raise TilepassError(f"the interpreter stopped: {result.stderr}")
    for case, problem in zip(cases, answers, strict=True):
        if problem is not None:
            raise TilepassError(f"{case}: {problem}")
    shapes = ", ".join("x".join(map(str, shape)) for shape in CPU_SHAPES)
    print(f"ok: the kernel's source, run by Triton's interpreter, agrees with fp32 at {shapes}")
    print("    (with flatten on and off; the interpreter runs the loops as they are written)")
    print("not checked: what Triton and ptxas made of either variant; that takes a GPU")


def time_on_gpu(shape: str) -> int:
    """Check both variants on the GPU and time them in pairs; the exit code of `tilepass ab`."""
    command = ["ab", KERNEL, "--a", OFF, "--b", ON, "--shape", shape]
    return subprocess.run([sys.executable, "-m", "tilepass", *command], check=False).returncode


def run(shape: str) -> int:
    """The demonstration; returns the exit code."""
    found = gpu()
    usable = found is not None and found[1] >= HOPPER
    arch = found[1] if found and usable else HOPPER
    where = f"{found[0]} (sm_{found[1]})" if found else "no GPU"
    print(f"tilepass demo: {KERNEL}, Triton {triton.__version__}, {where}, compiling for sm_{arch}")

    off, on = compile_variant(OFF, arch), compile_variant(ON, arch)
    title("what the pass says (remarks)")
    for remark in (*off.remarks, *on.remarks):
        print(remark.format().replace(f"{SOURCE}/", ""))
    title("what it changed in the IR (before fusion in ttgir, off against on)")
    show_difference(off.after_pass, on.after_pass)
    title("what became of it (static figures)")
    show_figures([off, on])
    title("do both compute the same?")
    check_what_changed(off, on)
    if not usable:
        check_source_on_cpu()
        return 0
    title(f"on the GPU: {where}")
    return time_on_gpu(shape)


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Show what a pass does to a persistent matmul.")
    parser.add_argument("--shape", default="8192x8192x1024", help="MxNxK to time on a GPU")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        # A cached kernel would be taken as it is, without the passes running and saying anything.
        os.environ["TRITON_CACHE_DIR"] = cache
        # Its default is about to change; a comparison of two builds needs it fixed.
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
        try:
            return run(arguments.shape)
        except TilepassError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
