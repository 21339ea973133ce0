"""Idioms of persistent matmuls under `epilogue-warp-specialize`: what each scheme makes of them,
and whether that is right on a GPU.

Compiling needs no GPU (a stand-in for Triton's driver compiles into Triton's cache, where the
launches find it). Both go on in several processes; one whose kernel hangs or faults is started
again.
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from tests import ws_idiom_kernels as kernels

PASS = "epilogue-warp-specialize"
SCHEMES = ("cooperative", "ping-pong", "split-consumer")
LAUNCHES = 20
# Tails in every dimension, several tiles for a program; fewer tiles than programs; no steps.
_SHAPES = ((1992, 1552, 208, 24), (328, 336, 336, 132), (328, 336, 0, 5))
_GROUP_SIZES = (256, 0, 128, 256)


@dataclass(frozen=True)
class Idiom:
    """A kernel and its tile; types of A and B, and of the bias or residual if there is one. `rank`
    is that of A and B, and of C and the residual where those are `ranked`; `scale` is that of the
    product."""

    kernel: Any
    tile: tuple[int, int, int] = (128, 128, 64)
    warps: int = 8
    stages: int = 3
    a: str = "float16"
    b: str = "float16"
    bias: str = ""
    residual: str = ""
    scale: float = 1.0
    grouped: bool = False
    rank: int = 2
    ranked: bool = False
    experts: int = 1
    pointers: bool = False
    stored: tuple[int, int] = (0, 0)
    limit: int | None = None
    tolerance: float = 2e-3


IDIOMS: dict[str, Idiom] = {
    "plain": Idiom(kernels.plain),
    "carried-tile": Idiom(kernels.carried_tile, warps=4, stages=4),
    "author-subtile": Idiom(kernels.author_subtile, tile=(128, 256, 64), stored=(128, 128)),
    "author-quarters": Idiom(
        kernels.author_quarters, tile=(128, 256, 64), stored=(128, 64), scale=0.5
    ),
    "author-residual": Idiom(
        kernels.author_residual, tile=(128, 256, 64), stored=(128, 128), residual="float16"
    ),
    "author-pointers": Idiom(kernels.author_pointers, pointers=True),
    "author-ping-pong": Idiom(kernels.author_subtile, warps=4, stages=4, stored=(128, 64)),
    "rank-3": Idiom(kernels.rank_3, rank=3),
    "experts": Idiom(kernels.experts, rank=3, ranked=True, experts=2, residual="float16"),
    "no-limit": Idiom(kernels.plain, limit=256),
    "grouped": Idiom(kernels.grouped, grouped=True),
    "guarded": Idiom(kernels.guarded, grouped=True),
    "slow-accumulation": Idiom(
        kernels.slow_accumulation,
        tile=(128, 128, 128),
        a="float8_e4m3fn",
        b="float8_e4m3fn",
        tolerance=2e-2,
    ),
    "fused": Idiom(kernels.fused),
    "dequantized": Idiom(kernels.dequantized, tile=(128, 64, 64), a="int8"),
} | {
    f"row-bias-{width}-{kind}": Idiom(kernels.row_bias, tile=(128, width, 64), bias=kind)
    for width in (32, 64, 128, 256)
    for kind in ("float16", "float32", "float8_e4m3fn")
}


@dataclass(frozen=True)
class Point:
    """An idiom under a pipeline."""

    idiom: str
    options: str

    @property
    def pipeline(self) -> str:
        return f"{PASS}{{{self.options}}}"


@dataclass(frozen=True)
class Outcome:
    """What became of a point: `specialized`, `refused` with the reason, or `wrong` with what is."""

    kind: str
    detail: str = ""


def points(names: Iterable[str] = ()) -> Iterator[Point]:
    """Every idiom with every scheme; rows in pieces, and left to the pass."""
    for name in names or IDIOMS:
        pieces = ("",)
        if name.startswith("row-bias"):
            pieces = ("", ",epilogue-subtile=2", ",epilogue-subtile=4,c-buffers=2")
        yield Point(name, "scheme=auto")
        for scheme, more in itertools.product(SCHEMES, pieces):
            yield Point(name, f"scheme={scheme}{more}")


class Launch:
    """A point's kernel with arguments of one shape on a device, ready to be launched."""

    def __init__(self, point: Point, shape: Sequence[int], device: str) -> None:
        import torch

        idiom = IDIOMS[point.idiom]
        self._idiom, self._point = idiom, point
        m, n, k, programs = shape
        if idiom.grouped:
            m = sum(_GROUP_SIZES) if idiom.kernel is kernels.grouped else 2 * 128 * 4
        groups = len(_GROUP_SIZES) if idiom.grouped else idiom.experts
        random = torch.Generator(device).manual_seed(m + k)

        def values(kind: str, *sizes: int) -> Any:
            if kind == "int8":
                return torch.randint(-4, 5, sizes, device=device, generator=random).to(torch.int8)
            made = torch.rand(sizes, device=device, generator=random) - 0.5
            return made.to(getattr(torch, kind))

        # An array without columns has no descriptor: what is not read may hold anything.
        depth = max(k, 16)
        self.a, self.b = values(idiom.a, m, depth), values(idiom.b, groups * n, depth)
        self.bias = values(idiom.bias, 1, n) if idiom.bias else None
        self.residual = values(idiom.residual, m, n) if idiom.residual else None
        self.c = torch.empty((m, n), device=device, dtype=torch.float16)
        self._sizes = torch.tensor(_GROUP_SIZES, device=device, dtype=torch.int32)
        self._shape, self._programs = (m, n, k), programs
        self._arguments = self._made()

    def _made(self) -> list[Any]:
        from triton.tools.tensor_descriptor import TensorDescriptor

        idiom = self._idiom
        bm, bn, bk = idiom.tile
        outer = [1] * (idiom.rank - 2)

        def describe(array: Any, *block: int) -> Any:
            return TensorDescriptor.from_tensor(array, list(block))

        a, b = self.a.view(*outer, *self.a.shape), self.b
        if outer:
            b = b.view(idiom.experts, -1, b.shape[-1])
        found = [describe(a, *outer, bm, bk), describe(b, *outer, bn, bk)]
        block, around = idiom.stored if any(idiom.stored) else (bm, bn), outer * idiom.ranked

        def stored(array: Any) -> Any:
            return describe(array.view(*around, *array.shape), *around, *block)

        found.append(self.c if idiom.pointers else stored(self.c))
        if self.bias is not None:
            found.append(describe(self.bias, 1, bn))
        if self.residual is not None:
            found.append(stored(self.residual))
        m, n, k = self._shape
        if idiom.grouped:
            return [*found, self._sizes, len(_GROUP_SIZES), n, k]
        return [*found, m, n, k]

    def __call__(self) -> Any:
        """Launch once, `c` poisoned before; returns what was compiled."""
        self.c.fill_(float("nan"))
        if self._idiom.grouped:
            self.c[~self._stored_rows()] = 0.0
        return self.launch()

    def launch(self) -> Any:
        """Launch once; returns what was compiled."""
        import torch

        idiom = self._idiom
        limit = {} if idiom.limit is None else {"maxnreg": idiom.limit}
        with torch.no_grad():
            return idiom.kernel[(self._programs,)](
                *self._arguments,
                *idiom.tile,
                num_warps=idiom.warps,
                num_stages=idiom.stages,
                **limit,
            )

    def _stored_rows(self) -> Any:
        """Which rows of C a grouped kernel stores."""
        import torch

        stored = torch.zeros(self.c.shape[0], dtype=torch.bool, device=self.c.device)
        for first, _, rows in self._groups():
            # A tile is stored whole.
            stored[first : first + -(-rows // 128) * 128] = True
        return stored

    def _groups(self) -> Iterator[tuple[int, int, int]]:
        """First row of A, first row of B and number of rows of each group."""
        first = 0
        for group, rows in enumerate(_GROUP_SIZES):
            apart = self._idiom.kernel is kernels.guarded
            yield (group * 256 if apart else first), group * self._shape[1], rows
            first += rows

    def _plain(self, a: Any, b: Any) -> Any:
        """A B^T, where there are experts with that of each tile of rows."""
        import torch

        (m, n, _), tall = self._shape, self._idiom.tile[0]
        experts = torch.arange(m, device=a.device) // tall % self._idiom.experts
        found = torch.zeros((m, n), device=a.device)
        for index in range(self._idiom.experts):
            rows = experts == index
            found[rows] = a[rows] @ b[index * n : (index + 1) * n].T
        return found

    def reference(self) -> Any:
        """C in fp32."""
        import torch

        m, n, k = self._shape
        a, b = self.a.float()[:, :k], self.b.float()[:, :k]
        if not self._idiom.grouped:
            found = self._plain(a, b) * self._idiom.scale
            added = [each.float() for each in (self.bias, self.residual) if each is not None]
            return sum(added, found)
        found = torch.zeros((m, n), device=a.device)
        for first, weights, rows in self._groups():
            end = first + -(-rows // 128) * 128
            found[first:end] = a[first:end] @ b[weights : weights + n].T
        return found


def compile_point(point: Point) -> Outcome:
    """Compile a point for sm_90 into Triton's cache, without a GPU."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent))
    from frontend_support import fake_driver

    from tilepass.activate import enabled
    from tilepass.core.errors import PassFailure

    with fake_driver(), enabled(point.pipeline, remarks="none") as session:
        try:
            compiled = [Launch(point, shape, "cpu")() for shape in _shapes_of(point)]
        except PassFailure as error:
            *_, refused, reason = str(error).rpartition("cannot be specialized so: ")
            return Outcome("refused" if refused else "wrong", reason)
        except Exception as error:
            return Outcome("wrong", f"{type(error).__name__}: {error}")
    if all("ttg.warp_specialize(" in each.asm["ttgir"] for each in compiled):
        return Outcome("specialized")
    missed = [each.message for each in session.remarks if each.kind == "missed"]
    return Outcome("refused", missed[0] if missed else "left as it is")


def launch_point(point: Point) -> Outcome:
    """Launch a point at every shape: against fp32, and again and again for the same bits."""
    import torch

    from tilepass.activate import enabled

    with enabled(point.pipeline, remarks="none"):
        for shape in _shapes_of(point):
            launch = Launch(point, shape, "cuda")
            launch()
            first, wanted = launch.c.clone(), launch.reference()
            error = (first.float() - wanted).abs() - IDIOMS[point.idiom].tolerance * wanted.abs()
            worst = float(error.nan_to_num(nan=float("inf")).max())
            if worst > IDIOMS[point.idiom].tolerance:
                return Outcome("wrong", f"{shape}: off by {worst:.3g}")
            differ: list[Any] = []
            for _ in range(LAUNCHES):
                launch()
                differ.append((launch.c.view(torch.int16) != first.view(torch.int16)).any())
            if changed := [number for number, each in enumerate(differ) if bool(each)]:
                return Outcome("wrong", f"{shape}: launches {changed} of {LAUNCHES} differ")
    return Outcome("specialized")


TIMED_SHAPES = ((4096, 4096, 4096, 132), (8192, 8192, 1024, 132))


def time_point(point: Point) -> Outcome:
    """Time a point in turn with the kernel that no pass has changed, at large shapes."""
    from tilepass.ab.cuda_device import CudaGpu, launches_for
    from tilepass.ab.protocol import Plan, Samples, measure, summarise
    from tilepass.activate import enabled

    found: list[str] = []
    for shape in TIMED_SHAPES:
        gpu, launch = CudaGpu(None), Launch(point, shape, "cuda")
        launch.launch()
        count = launches_for(gpu.launch_us(gpu.capture([launch.launch])))
        stock = [gpu.capture([launch.launch] * count) for _ in range(2)]
        with enabled(point.pipeline, remarks="none"):
            launch.launch()
            changed = gpu.capture([launch.launch] * count)
        samples, plan = Samples(2), Plan(seconds=3.0)
        for batch in measure(gpu.timer([stock[0], changed, stock[1]]), 2, plan):
            samples.add(batch)
        summary = summarise(samples, plan.criteria)
        assert summary is not None
        ratio = summary.comparisons[0].estimate.ratio
        sizes = "x".join(map(str, shape[:3]))
        found.append(f"{sizes} {summary.medians[0]:.1f} us, {1 / ratio:.3f} of stock's speed")
    return Outcome("timed", "; ".join(found))


def _shapes_of(point: Point) -> Sequence[Sequence[int]]:
    """A loop over the steps of all tiles has none for tiles without steps: they are not stored."""
    fused = IDIOMS[point.idiom].kernel is kernels.fused
    return _SHAPES[:2] if fused else _SHAPES


def compile_all(chosen: Sequence[Point], jobs: int) -> Iterator[tuple[Point, Outcome]]:
    """Each point and what becomes of it, compiled in so many processes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from zip(chosen, pool.map(compile_point, chosen), strict=True)


def launch_all(
    chosen: Sequence[Point], jobs: int, answer: Callable[[Point], Outcome] = launch_point
) -> Iterator[tuple[Point, Outcome]]:
    """Each point and what its launches came to, in so many processes that end with a fault or a
    hang."""
    idle: SimpleQueue[Worker] = SimpleQueue()
    for _ in range(jobs):
        idle.put(Worker(answer))

    def run(point: Point) -> Outcome:
        worker = idle.get()
        try:
            return worker.run(point)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(jobs) as threads:
        yield from zip(chosen, threads.map(run, chosen), strict=True)
    for _ in range(jobs):
        idle.get().stop()


class Worker:
    """A process that answers points by outcomes."""

    def __init__(self, answer: Callable[[Point], Outcome], seconds: float = 60.0) -> None:
        self._answer = answer
        self._seconds = seconds
        self._process: Any = None
        self._connection: Any = None

    def run(self, point: Point) -> Outcome:
        """The outcome of a point; the process is a new one after a fault."""
        if self._process is None:
            self._start()
        self._connection.send(point)
        if not self._connection.poll(self._seconds):
            self.stop()
            return Outcome("wrong", f"no answer in {self._seconds:.0f} s: it hangs")
        try:
            outcome, usable = self._connection.recv()
        except EOFError:
            outcome, usable = Outcome("wrong", "the process died"), False
        if not usable:
            self.stop()
        return outcome

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self._answer), daemon=True)
        self._process.start()
        other.close()
        # What it imports takes a while, and is not the point's.
        self._connection.recv()

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(connection: Any, answer: Callable[[Point], Outcome]) -> None:
    connection.send("ready")
    while True:
        try:
            outcome = answer(connection.recv())
        except EOFError:
            return
        except Exception as error:
            # A fault of the GPU leaves the process without one.
            connection.send((Outcome("wrong", f"{type(error).__name__}: {error}"), False))
            return
        connection.send((outcome, True))
