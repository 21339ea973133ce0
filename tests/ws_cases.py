"""What `epilogue-warp-specialize` is run on: kernels' variants, the schemes, and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

Shape = tuple[int, ...]

PLAIN, FURTHER, GROUPED = "persistent_matmul", "persistent_matmul_epilogues", "grouped_matmul"
NARROW: dict[str, Any] = {"block_n": 128, "num_stages": 4}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bf16": (PLAIN, {}),
    "bf16-128": (PLAIN, NARROW),
    "fp16": (PLAIN, {"dtype": "fp16"}),
    "fp8": (PLAIN, {"dtype": "fp8e4m3"}),
    "bias": (PLAIN, {"epilogue": "bias"}),
    "gelu": (PLAIN, {"epilogue": "bias_gelu"}),
    "residual": (PLAIN, {"epilogue": "residual"}),
    "device": (PLAIN, {"descriptors": "device"}),
    "pointer": (PLAIN, {"store": "pointer", **NARROW}),
    "pointer-bias": (PLAIN, {"store": "pointer", "epilogue": "bias", "dtype": "fp16", **NARROW}),
    "silu": (FURTHER, {"finish": "silu"}),
    "clamp-residual": (FURTHER, {"finish": "scale_clamp", "epilogue": "residual"}),
    "row-bias": (FURTHER, {"finish": "row_bias", "dtype": "fp16"}),
    "two-stores": (FURTHER, {"finish": "silu", "keep_product": True}),
    "a-k-outer": (FURTHER, {"a_layout": "k_outer"}),
    "b-k-outer": (FURTHER, {"b_layout": "k_outer", "epilogue": "bias"}),
    "fp32-out": (FURTHER, {"output": "fp32"}),
    "fp8-out": (FURTHER, {"dtype": "fp8e4m3", "output": "fp8e4m3"}),
    "grouped": (GROUPED, {}),
}

SCHEMES: dict[str, str] = {
    "cooperative": "scheme=cooperative",
    "ping-pong": "scheme=ping-pong",
    "ping-pong-4": "scheme=ping-pong",
    "split-turns": "scheme=split-consumer,late-subtiles=0,alternate-epilogues=true",
    "split-consumer": "scheme=split-consumer",
    "auto": "scheme=auto",
}

PAIRS = tuple((variant, scheme) for variant in VARIANTS for scheme in SCHEMES)

# Two waves of tiles, four and five steps of K; no K and few tiles; one step, several tiles for a
# program; nothing a multiple of the tile or of 16.
SHAPES: tuple[tuple[Shape, dict[str, Any]], ...] = (
    ((2176, 4352, 256), {}),
    ((2176, 4352, 320), {}),
    ((304, 528, 0), {}),
    ((640, 1280, 64), {"programs": 3}),
    ((1000, 2104, 200), {"programs": 7}),
)


@dataclass(frozen=True)
class Case:
    """One point: a kernel's configuration under a pipeline, at a shape."""

    kernel: str
    fields: dict[str, Any]
    pipeline: str
    shape: Shape
    must_specialize: bool

    def to_json(self) -> dict[str, Any]:
        """As the worker takes it."""
        return asdict(self)


def cases_of(variant: str, scheme: str) -> Iterator[Case]:
    """The points of a variant under a scheme, one for each shape."""
    kernel, fields = VARIANTS[variant]
    fields = {"flatten": False, **fields} if kernel != FURTHER else dict(fields)
    if scheme.startswith("ping-pong"):
        # Each group holds the accumulator of a whole tile.
        fields = {**fields, **NARROW, "num_warps": 4 if scheme == "ping-pong-4" else 8}
    pipeline = f"epilogue-warp-specialize{{{SCHEMES[scheme]}}}"
    for shape, more in SHAPES:
        sizes = (5, *shape) if kernel == GROUPED else shape
        yield Case(kernel, {**fields, **more}, pipeline, sizes, scheme != "auto")
