"""`epilogue-warp-specialize` against the plain kernel and against PyTorch's cuBLAS calls.

Three studies on the persistent matmul, bf16 in and out: without an epilogue over ten shapes, with
bias and GELU, and with a residual, over nine. The baseline of each is the library's fused call;
every other arm is the same kernel file under another pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilepass.ab.job import Arm, Job, Point, Shape
from tilepass.ab.protocol import Plan
from tilepass.ab.torch_matmul import LIBRARIES
from tilepass.core.errors import TilepassError, nearest

SHALLOW = (8192, 8192, 512)
"""The shape with the shortest main loop of the large ones: most of all it shows the epilogue."""
EPILOGUE_SHAPES: tuple[Shape, ...] = (
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (8192, 8192, 1024),
    SHALLOW,
    (4096, 14336, 4096),
    (2048, 2048, 16384),
    (4096, 4096, 512),
    (16384, 2048, 2048),
    (1024, 8192, 8192),
)
SHAPES: tuple[Shape, ...] = (*EPILOGUE_SHAPES, (8192, 28672, 8192))
KERNEL = "persistent-matmul"
LIBRARY, PLAIN, FLATTENED = "library", "plain", "flattened"
PLAN = Plan(seconds=6.0)

NARROW: Mapping[str, str] = {"block_n": "128", "num_stages": "4"}
WIDE: Mapping[str, str] = {"block_n": "256", "num_stages": "3"}
"""Tiles; the plain kernel with a residual fits only the narrow one into shared memory."""


@dataclass(frozen=True)
class Variant:
    """The pass with these options, on the kernel with this tile."""

    name: str
    options: str
    tile: Mapping[str, str] = field(default_factory=lambda: WIDE)

    def arm(self) -> Arm:
        """The arm of a job."""
        return Arm(self.name, f"epilogue-warp-specialize{{{self.options}}}", self.tile)


VARIANTS = (
    Variant("cooperative", "scheme=cooperative"),
    Variant("cooperative-128", "scheme=cooperative", NARROW),
    Variant("ping-pong", "scheme=ping-pong", {**NARROW, "num_warps": "4"}),
    Variant("split-turns", "scheme=split-consumer,late-subtiles=0,alternate-epilogues=true"),
    Variant("split-early", "scheme=split-consumer,late-subtiles=0,alternate-epilogues=false"),
    Variant("split-consumer", "scheme=split-consumer"),
    Variant("split-consumer-128", "scheme=split-consumer", NARROW),
    Variant("auto", "scheme=auto"),
)


@dataclass(frozen=True)
class Goal:
    """How much faster than the baseline an arm has to be, as ratios of times.

    `geomean` over all shapes, `least` on each, `shallow` and `shallow_over_plain` (against the
    plain kernel instead of the library) at the shape SHALLOW. `arm` None is the best of all arms
    at each shape.
    """

    arm: str | None
    geomean: float
    least: float
    shallow: float = 0.0
    shallow_over_plain: float = 0.0


@dataclass(frozen=True)
class Study:
    """A job whose first arm is the library, and what has to come out of it."""

    name: str
    job: Job
    goals: tuple[Goal, ...]


def matmul_study() -> Study:
    """No epilogue: against `torch.mm`."""
    goals = (
        Goal("split-consumer", 1.02, 0.99, shallow=1.04, shallow_over_plain=1.24),
        Goal(None, 1.05, 1.0),
    )
    return _study("warp_specialize_matmul", "none", SHAPES, WIDE, goals)


def bias_gelu_study() -> Study:
    """Bias and GELU: against `torch._addmm_activation`."""
    goals = (Goal(None, 1.05, 0.98, shallow=1.15),)
    return _study("warp_specialize_bias_gelu", "bias_gelu", EPILOGUE_SHAPES, WIDE, goals)


def residual_study() -> Study:
    """An added matrix: against `torch.addmm`."""
    goals = (Goal(None, 1.10, 0.98, shallow=1.30),)
    return _study("warp_specialize_residual", "residual", EPILOGUE_SHAPES, NARROW, goals)


STUDIES = {"matmul": matmul_study, "bias-gelu": bias_gelu_study, "residual": residual_study}


def _study(
    name: str,
    epilogue: str,
    shapes: Sequence[Shape],
    plain_tile: Mapping[str, str],
    goals: tuple[Goal, ...],
) -> Study:
    arms = (
        Arm(LIBRARY, library=LIBRARIES[epilogue]),
        Arm(PLAIN, overrides=plain_tile),
        Arm(FLATTENED, "flatten-loops{mode=on}", plain_tile),
        *(variant.arm() for variant in VARIANTS),
    )
    points = tuple(Point(shape, {"epilogue": epilogue, "flatten": "off"}) for shape in shapes)
    return Study(name, Job(KERNEL, arms, points, PLAN, keep_going=True), goals)


def restricted(study: Study, arms: Sequence[str], shapes: Sequence[Shape]) -> Study:
    """The study with these of its arms, besides the library and the plain kernel, and these
    shapes; empty sequences leave all. Raises TilepassError on an arm that it has not."""
    known = [arm.label for arm in study.job.arms]
    for name in arms:
        if name not in known:
            raise TilepassError(f"no scheme '{name}'{nearest(name, known)} ({', '.join(known)})")
    kept = {LIBRARY, PLAIN, *(arms or known)}
    settings = study.job.points[0].overrides
    job = replace(
        study.job,
        arms=tuple(arm for arm in study.job.arms if arm.label in kept),
        points=tuple(Point(shape, settings) for shape in shapes) or study.job.points,
    )
    return replace(study, job=job)
