"""The contract that every kernel file fulfils, so that generic tools can use any of them.

    workload = get_workload("persistent_matmul_triton")
    config = workload.config_for(shape, epilogue="bias")    # or config_from(shape, {text: text})
    inputs = workload.make_inputs(shape, seed=0, config=config)
    launch = workload.prepare(inputs, config)              # allocates; outputs hold NaN
    launch()                                               # nothing but the kernel launch
    problem = workload.check(launch, inputs)               # None, or what is wrong

Without a GPU: `workload.ast_source(config)` and `workload.compile(config, target)`.
Importing this module or a kernel file imports triton but not torch.
"""

from __future__ import annotations

import dataclasses
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from tilepass.core.errors import TilepassError, nearest
from tilepass.core.options import convert

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]

# Triton ships no type information: these names only say what is meant.
ASTSource = Any
CompiledKernel = Any
GPUTarget = Any
JITFunction = Any


@dataclass(frozen=True, kw_only=True)
class AnyConfig:
    """How a kernel is compiled. A workload's own fields (tile, data type, variant) follow in its
    subclass."""


@dataclass(frozen=True, kw_only=True)
class Config(AnyConfig):
    """How a Triton kernel is compiled: `num_warps`, `num_stages` and `maxnreg` are Triton's compile
    options."""

    num_warps: int = 8
    num_stages: int = 3
    maxnreg: int | None = None

    def options(self) -> dict[str, Any]:
        """Triton's compile options, as `triton.compile` and a launch take them."""
        options: dict[str, Any] = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        if self.maxnreg is not None:
            options["maxnreg"] = self.maxnreg
        return options


@dataclass(frozen=True)
class Inputs:
    """What one problem consists of. `config` is the one the tensors were made for: its data types
    and its epilogue matter for `reference`, its tile does not."""

    shape: Shape
    seed: int
    config: AnyConfig
    tensors: Mapping[str, torch.Tensor]

    @property
    def device(self) -> torch.device:
        return next(iter(self.tensors.values())).device


@dataclass(frozen=True)
class Launch:
    """A kernel bound to its arguments. Calling it does no host work beyond Triton's own launch, so
    it can be timed or captured in a CUDA graph; `outputs` are overwritten by each call."""

    run: Callable[[], Any]
    outputs: tuple[torch.Tensor, ...]
    grid: tuple[int, ...]
    scratch: tuple[torch.Tensor, ...] = ()
    """Floats that the kernel writes before it reads them, e.g. partial sums."""

    def __call__(self) -> CompiledKernel | None:
        """Launch; returns Triton's compiled kernel, or None when the interpreter ran it."""
        return self.run()

    def poison(self) -> None:
        """Fill outputs and scratch with NaN, which shows what the kernel does not write, or reads
        before it is written: without it an earlier launch has left the right values there."""
        for tensor in (*self.outputs, *self.scratch):
            tensor.fill_(float("nan"))


@dataclass(frozen=True)
class Tolerance:
    """|output - reference| <= absolute + relative * |reference|, element by element."""

    relative: float
    absolute: float


AnyConfigT = TypeVar("AnyConfigT", bound=AnyConfig)
ConfigT = TypeVar("ConfigT", bound=Config)


class AnyWorkload(ABC, Generic[AnyConfigT]):
    """One kernel file's kernel(s) with their inputs, reference and launch, in whatever language."""

    name: ClassVar[str]
    """The file's name without `.py`, e.g. `persistent_matmul_triton`."""
    dims: ClassVar[tuple[str, ...]]
    """What the numbers of a shape mean, e.g. `("M", "N", "K")`."""
    promises_bit_equality: ClassVar[bool] = True
    """Launches of one binary on the same inputs give equal bits (no unordered float sums)."""
    default_config: AnyConfigT
    default_shapes: tuple[Shape, ...]

    @abstractmethod
    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: AnyConfigT | None = None
    ) -> Inputs:
        """Random tensors for `shape`; the same seed gives the same values.

        Raises TilepassError when the shape does not fit `dims`.
        """

    @abstractmethod
    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        """What the outputs should be, computed by torch in fp32."""

    @abstractmethod
    def prepare(self, inputs: Inputs, config: AnyConfigT) -> Launch:
        """Allocate outputs (filled with NaN) and everything else that a launch needs.

        Raises TilepassError when `config` cannot run on these tensors (strides, sizes).
        """

    @abstractmethod
    def tolerance(self, inputs: Inputs) -> Tolerance:
        """What rounding and summation order may cost against `reference`."""

    @abstractmethod
    def flops(self, shape: Shape, config: AnyConfigT) -> float:
        """Floating-point operations of one launch (a multiply-add counts as two)."""

    @abstractmethod
    def bytes_moved(self, shape: Shape, config: AnyConfigT) -> float:
        """Bytes that must cross global memory at least once: inputs read, outputs written."""

    def config_for(self, shape: Shape, **fields: Any) -> AnyConfigT:
        """The configuration to use for `shape` with these fields given; the workload chooses the
        others. Raises TilepassError on an unknown field."""
        self.checked_shape(shape)
        return self.with_fields(self.default_config, fields)

    def config_from(self, shape: Shape, texts: Mapping[str, str]) -> AnyConfigT:
        """`config_for` with the fields as text, e.g. `{"block-m": "64", "epilogue": "bias"}`."""
        return self.config_for(shape, **self.parse_fields(texts))

    def configure(self, config: AnyConfigT, texts: Mapping[str, str]) -> AnyConfigT:
        """`config` with these fields replaced and no other changed."""
        return self.with_fields(config, self.parse_fields(texts))

    def parse_fields(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Fields of the configuration from text. Raises TilepassError on an unknown field or a
        value of the wrong type."""
        types = typing.get_type_hints(type(self.default_config))
        values: dict[str, Any] = {}
        for key, text in texts.items():
            name = key.replace("-", "_")
            if name not in types:
                known = ", ".join(types)
                raise TilepassError(
                    f"{self.name}: no option '{key}'{nearest(name, types)} (options: {known})"
                )
            try:
                values[name] = convert(text, types[name])
            except ValueError as error:
                raise TilepassError(f"{self.name}: option '{key}': {error}") from error
        return values

    def with_fields(self, config: AnyConfigT, fields: Mapping[str, Any]) -> AnyConfigT:
        """`config` with fields replaced by values. Raises TilepassError on an unknown field."""
        known = [f.name for f in dataclasses.fields(config)]
        for name in fields:
            if name not in known:
                raise TilepassError(f"{self.name}: no option '{name}'{nearest(name, known)}")
        return dataclasses.replace(config, **fields)

    def check(self, launch: Launch, inputs: Inputs) -> str | None:
        """Compare the outputs with `reference`; None when they agree, else what does not."""
        expected = self.reference(inputs)
        tolerance = self.tolerance(inputs)
        for index, (output, want) in enumerate(zip(launch.outputs, expected, strict=True)):
            if (problem := mismatch(output, want, tolerance)) is not None:
                return f"{self.name} {self.describe(inputs.shape)}: output {index}: {problem}"
        return None

    def checked_shape(self, shape: Shape) -> Shape:
        """`shape`, or a TilepassError when it has another number of sizes or a negative one."""
        if len(shape) != len(self.dims) or any(size < 0 for size in shape):
            text = "x".join(map(str, shape))
            raise TilepassError(f"{self.name}: shape {text} is not {'x'.join(self.dims)}")
        return shape

    def describe(self, shape: Shape) -> str:
        return " ".join(f"{d}={size}" for d, size in zip(self.dims, shape, strict=True))


class Workload(AnyWorkload[ConfigT]):
    """A workload of Triton kernels."""

    @abstractmethod
    def jit_function(self, config: ConfigT) -> JITFunction:
        """The `@triton.jit` function that `config` launches."""

    @abstractmethod
    def ast_source(self, config: ConfigT) -> tuple[ASTSource, dict[str, Any]]:
        """Source and options for `triton.compile`, specialised as a launch on aligned sizes is."""

    def launch_of(
        self,
        config: ConfigT,
        grid: tuple[int, ...],
        arguments: Mapping[str, Any],
        constants: Mapping[str, Any],
        outputs: tuple[torch.Tensor, ...],
        scratch: tuple[torch.Tensor, ...] = (),
    ) -> Launch:
        """The launch of this configuration's kernel on these arguments."""
        bound = self.jit_function(config)[grid]
        run = partial(bound, **arguments, **constants, **config.options())
        return Launch(run, outputs, grid, scratch)

    def compile(self, config: ConfigT, target: GPUTarget) -> CompiledKernel:
        """Compile for `target`; needs no GPU. Raises TilepassError with Triton's message."""
        triton: Any = import_module("triton")
        source, options = self.ast_source(config)
        try:
            return triton.compile(source, target=target, options=options)
        except (triton.errors.TritonError, RuntimeError, ValueError) as error:
            last = (str(error).strip() or type(error).__name__).splitlines()[-1]
            where = f"{target.backend}:{target.arch}"
            raise TilepassError(
                f"{self.name}: {config} does not compile for {where}: {last}"
            ) from error


def mismatch(output: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> str | None:
    """None when `output` is within `tolerance` of `expected` everywhere (a NaN never is)."""
    import torch

    if output.shape != expected.shape:
        return f"shape {tuple(output.shape)}, expected {tuple(expected.shape)}"
    got, want = output.float(), expected.float()
    bad = ~((got - want).abs() <= tolerance.absolute + tolerance.relative * want.abs())
    count = int(bad.sum())
    if count == 0:
        return None
    first = tuple(int(i) for i in torch.nonzero(bad)[0])
    unwritten = int(torch.isnan(got).sum())
    return (
        f"{count} of {got.numel()} elements are wrong ({unwritten} NaN), the first at {first}: "
        f"{float(got[first]):.6g}, expected {float(want[first]):.6g}"
    )
