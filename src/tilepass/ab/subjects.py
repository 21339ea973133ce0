"""What is timed: a workload of tilepass, or a function of the user's.

A user's module (`module:function` or `file.py:function`) holds

    def make_inputs(shape: tuple[int, ...], seed: int, device: str = "cuda") -> Any
        What the function takes, made of torch tensors; the same seed gives the same values.
    def reference(inputs) -> torch.Tensor | tuple[torch.Tensor, ...]
        What the function should return, computed in fp32.
    def FUNCTION(inputs, **options) -> torch.Tensor | tuple[torch.Tensor, ...]
        Launches the kernel and returns its outputs, new tensors or ones that `inputs` holds.
        `options` are the texts given by --config, --config-a and --config-b.
    TOLERANCE = (relative, absolute)        optional
    DEFAULT_SHAPES = ((8192, 8192, 8192),)  optional
    def flops(shape) -> float, def bytes_moved(shape) -> float      optional

The function is captured into a CUDA graph: it must not synchronize or read back. Instead of a
function the name may be that of an object of tilepass's own class `Workload`.
"""

from __future__ import annotations

import dataclasses
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from tilepass.ab.job import Arm, Point, Shape
from tilepass.core.errors import TilepassError
from tilepass.kernels import workload as contract
from tilepass.kernels.cute_workload import is_cute_workload
from tilepass.subjects.kernel import load_function, load_module

if TYPE_CHECKING:
    import torch

    Tensors = tuple[torch.Tensor, ...]
    Launcher = Callable[[], Tensors]


class Subject(ABC):
    """Something with inputs, a launch and a reference. `config` is opaque and has a repr."""

    name: str
    default_shapes: tuple[Shape, ...]
    promises_equal_bits: bool
    """Launches of one binary on the same inputs give equal bits."""

    @abstractmethod
    def configure(self, point: Point, arm: Arm) -> Any:
        """The configuration of an arm at a point. Raises TilepassError on an unknown option."""

    @abstractmethod
    def make_inputs(self, shape: Shape, seed: int, config: Any, device: str = "cuda") -> Any:
        """Random inputs; the same seed gives the same values."""

    @abstractmethod
    def launcher(self, inputs: Any, config: Any) -> Launcher:
        """A function that launches on `inputs` and returns the outputs."""

    @abstractmethod
    def reference(self, inputs: Any) -> Tensors:
        """What the outputs should be, in fp32."""

    @abstractmethod
    def tolerance(self, inputs: Any, outputs: Tensors) -> contract.Tolerance:
        """What rounding may cost."""

    @abstractmethod
    def work(self, shape: Shape, config: Any) -> tuple[float, float]:
        """Floating-point operations and bytes of a launch; 0 where unknown."""


class WorkloadSubject(Subject):
    """A workload of `tilepass.kernels`, in whatever language."""

    def __init__(self, workload: contract.AnyWorkload[Any]) -> None:
        self._workload = workload
        self.name = workload.name
        self.default_shapes = workload.default_shapes
        self.promises_equal_bits = workload.promises_bit_equality

    def configure(self, point: Point, arm: Arm) -> Any:
        overrides = {**point.overrides, **arm.overrides}
        # Through config_for once more: what it derives from a field (a tile, a register limit)
        # has to follow an override of that field.
        typed = self._workload.configure(self._workload.default_config, overrides)
        return self._workload.config_for(
            point.shape, **{field: getattr(typed, field) for field in overrides}
        )

    def make_inputs(self, shape: Shape, seed: int, config: Any, device: str = "cuda") -> Any:
        return self._workload.make_inputs(shape, seed, device=device, config=config)

    def launcher(self, inputs: Any, config: Any) -> Launcher:
        launch = self._workload.prepare(inputs, config)

        def run() -> Tensors:
            launch()
            return launch.outputs

        return run

    def reference(self, inputs: Any) -> Tensors:
        return self._workload.reference(inputs)

    def tolerance(self, inputs: Any, outputs: Tensors) -> contract.Tolerance:
        return self._workload.tolerance(inputs)

    def work(self, shape: Shape, config: Any) -> tuple[float, float]:
        return self._workload.flops(shape, config), self._workload.bytes_moved(shape, config)


class OwnSubject(WorkloadSubject):
    """A workload of Triton kernels."""

    def __init__(self, workload: contract.Workload[Any]) -> None:
        super().__init__(workload)
        self.workload = workload


class UserSubject(Subject):
    """A function of a user's module; see the module docstring."""

    promises_equal_bits = False

    def __init__(self, name: str, module: ModuleType, function: str) -> None:
        self.name = name
        self._module = module
        self._function = self._required(function)
        self._make_inputs = self._required("make_inputs")
        self._reference = self._required("reference")
        self.default_shapes = tuple(getattr(module, "DEFAULT_SHAPES", ()))

    def configure(self, point: Point, arm: Arm) -> Any:
        return {**point.overrides, **arm.overrides}

    def make_inputs(self, shape: Shape, seed: int, config: Any, device: str = "cuda") -> Any:
        return self._make_inputs(shape, seed, device=device)

    def launcher(self, inputs: Any, config: Mapping[str, str]) -> Launcher:
        return lambda: self._tensors(self._function(inputs, **config), self._function.__name__)

    def reference(self, inputs: Any) -> Tensors:
        return self._tensors(self._reference(inputs), "reference")

    def tolerance(self, inputs: Any, outputs: Tensors) -> contract.Tolerance:
        """The module's TOLERANCE, or two units in the last place of the coarsest output."""
        import torch

        given: tuple[float, float] | None = getattr(self._module, "TOLERANCE", None)
        if given is not None:
            return contract.Tolerance(*given)
        epsilons = [torch.finfo(o.dtype).eps for o in outputs if o.dtype.is_floating_point]
        coarsest = max(epsilons, default=0.0)
        return contract.Tolerance(relative=2 * coarsest, absolute=2 * coarsest)

    def work(self, shape: Shape, config: Any) -> tuple[float, float]:
        flops = getattr(self._module, "flops", None)
        moved = getattr(self._module, "bytes_moved", None)
        return (flops(shape) if flops else 0.0), (moved(shape) if moved else 0.0)

    def _required(self, name: str) -> Callable[..., Any]:
        function = getattr(self._module, name, None)
        if not callable(function):
            raise TilepassError(
                f"kernel '{self.name}': {self._module.__file__} has no function '{name}' "
                "(a module to compare holds the function itself, make_inputs and reference)"
            )
        return function

    def _tensors(self, value: Any, function: str) -> Tensors:
        return tensors_of(value, f"kernel '{self.name}': {function}")


def find_subject(spec: str) -> Subject:
    """The subject that `spec` names: a workload of ours, `module:name` or `file.py:name`.

    Raises TilepassError.
    """
    if is_cute_workload(spec):
        # Here and not above: it builds on the classes of this module.
        return importlib.import_module("tilepass.ab.cute").CuteSubject.named(spec)
    if ":" not in spec:
        return OwnSubject(importlib.import_module("tilepass.kernels").get_workload(spec))
    where, _, name = spec.rpartition(":")
    module = load_module(where)
    found: object = getattr(module, name, None)
    if isinstance(found, contract.Workload):
        return OwnSubject(cast("contract.Workload[Any]", found))
    return UserSubject(spec, module, name)


def find_library(spec: str) -> Callable[[Any], Tensors]:
    """The function that an arm's `library` names: from the kernel's inputs to its outputs.

    Raises TilepassError.
    """
    where = spec.rpartition(":")[0]
    if not where:
        raise TilepassError(f"library '{spec}' is not of the form module:function")
    function = load_function(spec, f"library '{spec}': {where}")
    return lambda inputs: tensors_of(function(inputs), f"library '{spec}'")


def tensors_of(value: Any, what: str) -> Tensors:
    """One tensor or several as a tuple. Raises TilepassError where `what` gave anything else."""
    import torch

    several = isinstance(value, tuple | list)
    values: list[object] = list(cast("Iterable[object]", value)) if several else [value]
    tensors = tuple(item for item in values if isinstance(item, torch.Tensor))
    if not tensors or len(tensors) != len(values):
        raise TilepassError(
            f"{what} must return a tensor or a tuple of tensors, not {type(value).__name__}"
        )
    return tensors


def copy_inputs(inputs: Any) -> Any:
    """Another copy of the inputs, in memory of its own, strides and padding kept."""
    import copy

    if isinstance(inputs, contract.Inputs):
        return dataclasses.replace(inputs, tensors=copy.deepcopy(dict(inputs.tensors)))
    return copy.deepcopy(inputs)
