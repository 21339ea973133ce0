"""Which scheme of `epilogue-warp-specialize` for how much arithmetic in the epilogue.

usage: python -m benchmarks.epilogue_work [--works silu,gelu-erf,...] [--budget SECONDS]
       [--out FILE] [--compile]

Times the plain kernel against `auto` and against every scheme, for epilogues from none to GELU by
erf, with and without a tile of another matrix to multiply by. Writes the report after every point,
and prints a table: the plain kernel's time over the arm's, above 1 is faster. Exits non-zero where
`auto` is more than 2 % slower than the plain kernel. With --compile nothing runs: it prints for
each epilogue what `auto` chooses, and the instructions that it took the epilogue to have.
"""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from tilepass.ab.events import Event
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.protocol import Plan
from tilepass.ab.report import Report
from tilepass.ab.session import Means, add_figures, finished, need_gpu, run_on_gpu
from tilepass.ab.subjects import find_subject
from tilepass.ab.table import markdown_table
from tilepass.activate import enabled
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json
from tilepass.kernels._matmul_host import TRITON_TYPES
from tilepass.kernels._matmul_parts import accumulate, tile_origin
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import dtype_of, empty_rows, host_descriptor, program_slots
from tilepass.kernels.persistent_matmul_triton import PersistentConfig, PersistentMatmul
from tilepass.kernels.workload import Inputs, Launch

if TYPE_CHECKING:
    import torch

Work = Literal["none", "exp", "silu", "gelu-exp", "silu-twice", "silu-thrice", "gelu-erf"]
PASS = "epilogue-warp-specialize"
SCHEMES = ("cooperative", "ping-pong", "split-consumer")
ARMS = (
    Arm("plain"),
    Arm("auto", PASS),
    *(Arm(scheme, f"{PASS}{{scheme={scheme}}}") for scheme in SCHEMES),
)
SHAPES = ((4096, 4096, 4096), (8192, 8192, 512), (2048, 2048, 8192))
TILES = (
    {"block_n": "256", "num_warps": "8", "num_stages": "3"},
    {"block_n": "128", "num_warps": "8", "num_stages": "4"},
    {"block_n": "128", "num_warps": "4", "num_stages": "4"},
)
CASES: tuple[tuple[Work, bool], ...] = (
    ("none", False),
    ("exp", False),
    ("silu", False),
    ("gelu-exp", False),
    ("silu-twice", False),
    ("silu-thrice", False),
    ("gelu-erf", False),
    ("silu", True),
    ("silu-twice", True),
)
ALLOWED = 1.02
DEFAULT_OUT = Path(__file__).resolve().parents[1] / "results" / "epilogue_work.json"


@triton.jit
def silu(x):
    """x times its logistic function."""
    return x * tl.sigmoid(x)


@triton.jit
def activation(x, WORK: tl.constexpr):
    """The epilogue's arithmetic on [BLOCK_M, BLOCK_N] fp32."""
    if WORK == "exp":
        x = tl.exp(x)
    if WORK == "silu":
        x = silu(x)
    if WORK == "gelu-exp":
        x = x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))
    if WORK == "silu-twice":
        x = silu(silu(x))
    if WORK == "silu-thrice":
        x = silu(silu(silu(x)))
    if WORK == "gelu-erf":
        x = x * 0.5 * (tl.math.erf(x * 0.7071067811865476) + 1.0)
    return x


@triton.jit
def matmul_with_work(
    a_desc,
    b_desc,
    c_desc,
    gate_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    WORK: tl.constexpr,
):
    """C = work(A B^T), times a tile of `gate_desc` where there is one."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        row, column = tile_origin(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        x = accumulate(a_desc, b_desc, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K)
        x = activation(x, WORK)
        if gate_desc is not None:
            x = x * gate_desc.load([row, column]).to(tl.float32)
        c_desc.store([row, column], x.to(c_desc.dtype))


@dataclass(frozen=True, kw_only=True)
class WorkConfig(PersistentConfig):
    """`work` is the activation; `epilogue=residual` makes the tile that it is multiplied by."""

    work: Work = "none"


class EpilogueWork(PersistentMatmul):
    """C = work(A B^T), by tiles."""

    name = "epilogue_work"
    default_config = WorkConfig()
    default_shapes = SHAPES

    def jit_function(self, config: PersistentConfig) -> Any:
        return matmul_with_work

    def ast_source(self, config: PersistentConfig) -> tuple[Any, dict[str, Any]]:
        kind = TRITON_TYPES[config.dtype]
        m, n, k = config.block_m, config.block_n, config.block_k
        arguments: dict[str, str | None] = {
            "a_desc": f"tensordesc<{kind}[{m},{k}]>",
            "b_desc": f"tensordesc<{kind}[{n},{k}]>",
            "c_desc": f"tensordesc<{kind}[{m},{n}]>",
            "gate_desc": f"tensordesc<{kind}[{m},{n}]>" if config.epilogue == "residual" else None,
            **dict.fromkeys(("M", "N", "K"), "i32"),
        }
        source = ast_source(matmul_with_work, arguments, self.constants(config), ["M", "N", "K"])
        return source, config.options()

    def constants(self, config: PersistentConfig) -> dict[str, Any]:
        assert isinstance(config, WorkConfig)
        return {
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "GROUP_M": config.group_m,
            "WORK": config.work,
        }

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        functional = torch.nn.functional
        config = inputs.config
        assert isinstance(config, WorkConfig)
        x = inputs.tensors["a"].float() @ inputs.tensors["b"].float().T
        times = {"silu": 1, "silu-twice": 2, "silu-thrice": 3}.get(config.work, 0)
        for _ in range(times):
            x = functional.silu(x)
        if config.work == "exp":
            x = torch.exp(x)
        if config.work.startswith("gelu"):
            approximate = "none" if config.work == "gelu-erf" else "tanh"
            x = functional.gelu(x, approximate=approximate)
        if config.epilogue == "residual":
            x = x * inputs.tensors["residual"].float()
        return (x,)

    def make_inputs(self, shape: Any, seed: int, device: str = "cuda", config: Any = None) -> Any:
        """A and B so small that sums are near 1 and their exponentials no larger than a few."""
        inputs = super().make_inputs(shape, seed, device, config)
        inputs.tensors["a"].mul_(2.0 / max(1, shape[2]) ** 0.5)
        return inputs

    def prepare(self, inputs: Inputs, config: PersistentConfig) -> Launch:
        self.check_config(inputs, config)
        M, N, K = inputs.shape
        m, n, k = config.block_m, config.block_n, config.block_k
        c = empty_rows(M, N, dtype_of(config.output_dtype), inputs.device)
        gate = inputs.tensors.get("residual")
        arguments: dict[str, Any] = {
            "a_desc": host_descriptor(inputs.tensors["a"], [m, k]),
            "b_desc": host_descriptor(inputs.tensors["b"], [n, k]),
            "c_desc": host_descriptor(c, [m, n]),
            "gate_desc": None if gate is None else host_descriptor(gate, [m, n]),
            "M": M,
            "N": N,
            "K": K,
        }
        slots = config.programs or program_slots(inputs.device)
        grid = (min(slots, self.tiles(inputs.shape, config)),)
        return self.launch_of(config, grid, arguments, self.constants(config), (c,))


WORKLOAD = EpilogueWork()


def points(works: list[str]) -> tuple[Point, ...]:
    """Every case, tile and shape."""
    return tuple(
        Point(shape, {"work": work, "epilogue": "residual" if gated else "none", **tile})
        for work, gated in CASES
        if work in works
        for tile in TILES
        for shape in SHAPES
    )


def ratio(report: Report, index: int, arm: int) -> float | None:
    """The plain kernel's time over an arm's, None where the arm did not run."""
    found = report.compare(index, arm, 0)
    return None if found is None else 1 / found[0].ratio


def table(report: Report) -> str:
    """Markdown: a line for each point."""
    header = ["shape, epilogue, tile", "plain, us", *(arm.label for arm in ARMS[1:])]
    lines: list[list[str]] = []
    for index, point in enumerate(report.job.points):
        time = report.median_us(index, 0)
        cells = [ratio(report, index, arm) for arm in range(1, len(ARMS))]
        shown = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        lines.append([point.describe(), "-" if time is None else f"{time:.1f}", *shown])
    return markdown_table(header, lines)


def time_all(works: list[str], seconds: float, path: Path) -> bool:
    """Measure, write and print; whether `auto` is nowhere much slower."""
    need_gpu(required=True)
    job = Job("benchmarks.epilogue_work:WORKLOAD", ARMS, points(works), Plan(seconds=1.5),
              keep_going=True)  # fmt: skip

    def listen(report: Report, event: Event) -> None:
        if finished(event):
            write_json(path, report.to_dict())

    means = Means(os.cpu_count() or 1, seconds)
    report = run_on_gpu(job, find_subject(job.kernel), means, listen)
    add_figures(report)
    write_json(path, report.to_dict())
    print(f"{report.facts.get('GPU')} {report.failure or ''}\n{table(report)}")
    autos = [ratio(report, index, 1) for index in range(len(job.points))]
    slower = [each for each in autos if each is not None and each * ALLOWED < 1]
    missing = autos.count(None)
    print(
        f"auto: slower than the plain kernel by over 2 % at {len(slower)} of {len(autos)} points, "
        f"not measured at {missing}"
    )
    return not (slower or missing)


def print_choices(works: list[str]) -> None:
    """What `auto` chooses, compiled for sm_90."""
    for point in points(works)[:: len(SHAPES)]:
        config = WORKLOAD.config_from(point.shape, point.overrides)
        with enabled(PASS, remarks="none") as session:
            WORKLOAD.compile(config, GPUTarget("cuda", 90, 32))
        for decision in session.decisions:
            work = decision.facts.get("epilogue_work")
            print(f"{point.describe()}: {work} instructions, {decision.value}", flush=True)


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = list(dict.fromkeys(work for work, _ in CASES))
    parser.add_argument("--works", default=",".join(known), help=",".join(known))
    parser.add_argument("--budget", type=float, default=540.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="FILE")
    parser.add_argument("--compile", action="store_true", help="no GPU: what auto chooses")
    arguments = parser.parse_args()
    works: list[str] = arguments.works.split(",")
    if unknown := [work for work in works if work not in known]:
        parser.error(f"--works: no '{unknown[0]}' (works: {', '.join(known)})")
    try:
        if arguments.compile:
            print_choices(works)
            return 0
        return 0 if time_all(works, arguments.budget, arguments.out) else 1
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
