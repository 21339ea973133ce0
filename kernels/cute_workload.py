"""The contract of kernel files for CuTe DSL: that of `workload.py`, compiled by `cute.compile`.

    workload = get_cute_workload("gdn_prefill_cute")
    config = workload.config_for(shape, dtype="fp16")
    compiled = workload.compile(config, arch="sm_90a")      # needs no GPU
    inputs = workload.make_inputs(shape, seed=0, config=config)
    launch = workload.prepare(inputs, config)               # compiles at its first call

Importing this module imports neither cutlass nor torch; a kernel file imports cutlass.
"""

from __future__ import annotations

import re
import tempfile
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tilepass.core.errors import TilepassError, nearest
from tilepass.kernels.workload import AnyConfig, AnyWorkload, Inputs, Launch

if TYPE_CHECKING:
    import torch

_NAMES = ("block_diagonal_matmul_cute", "causal_attention_cute", "gdn_prefill_cute")


@dataclass(frozen=True, kw_only=True)
class CuteConfig(AnyConfig):
    """`dtype` is that of the operands of the matrix products."""

    dtype: Literal["bf16", "fp16"] = "bf16"


CuteConfigT = TypeVar("CuteConfigT", bound=CuteConfig)


@dataclass(frozen=True)
class CompiledCute:
    """A compiled host function with what it launches; `call` takes the launch's arguments."""

    call: Callable[..., Any]
    ptx: str
    cubin: bytes


@dataclass(frozen=True)
class Operands:
    """Arguments of the host function in order, the stream left out; the tensors among them that
    the kernel writes; and the CTAs that the host function starts."""

    arguments: tuple[Any, ...]
    outputs: tuple[torch.Tensor, ...]
    grid: tuple[int, ...]


class CuteWorkload(AnyWorkload[CuteConfigT]):
    """A workload of one CuTe kernel."""

    @abstractmethod
    def host_function(self, config: CuteConfigT) -> Any:
        """The `@cute.jit` function that launches; its last argument is a CUDA stream."""

    @abstractmethod
    def signature(self, config: CuteConfigT) -> tuple[Any, ...]:
        """Stand-ins for the arguments, without the stream: what `cute.compile` specialises on."""

    @abstractmethod
    def operands(self, inputs: Inputs, config: CuteConfigT) -> Operands:
        """The arguments on these inputs, outputs filled with NaN. Raises TilepassError when
        `config` cannot run on these tensors."""

    def compile(self, config: CuteConfigT, arch: str | None = None) -> CompiledCute:
        """Compile for `arch`, e.g. `sm_90a`; without one, for the GPU that is there.

        Raises TilepassError with the DSL's message.
        """
        cutlass: Any = import_module("cutlass")
        cute: Any = import_module("cutlass.cute")
        driver: Any = import_module("cuda.bindings.driver")
        compiler: Any = import_module("cutlass.base_dsl.compiler")
        with tempfile.TemporaryDirectory(prefix="tilepass-") as folder:
            options = [cute.KeepPTX(True), cute.KeepCUBIN(True), compiler.DumpDir(folder)]
            if arch is not None:
                options.append(_architecture(arch))
            arguments = (*self.signature(config), driver.CUstream(0))
            try:
                function = cute.compile[tuple(options)](self.host_function(config), *arguments)
            except cutlass.base_dsl.common.DSLBaseError as error:
                said = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip() or type(error).__name__
                raise TilepassError(
                    f"{self.name}: {config} does not compile for {arch or 'this GPU'}: "
                    f"{said.splitlines()[0]}"
                ) from error
            return CompiledCute(function, _text(function.__ptx__), _bytes(function.__cubin__))

    def prepare(self, inputs: Inputs, config: CuteConfigT) -> Launch:
        """Allocate the outputs; the kernel is compiled by the first call."""
        return self.launch_with(inputs, config, lambda: self.compile(config))

    def launch_with(
        self, inputs: Inputs, config: CuteConfigT, compiled: Callable[[], CompiledCute]
    ) -> Launch:
        """A launch of a kernel that `compiled` gives when it is first called."""
        operands = self.operands(inputs, config)
        return Launch(_FirstCompile(compiled, operands.arguments), operands.outputs, operands.grid)


class _FirstCompile:
    """Compiles when first called, and launches on torch's current stream."""

    def __init__(self, compiled: Callable[[], CompiledCute], arguments: tuple[Any, ...]) -> None:
        self._compile = compiled
        self._arguments = arguments
        self._compiled: CompiledCute | None = None

    def __call__(self) -> CompiledCute:
        import torch

        if self._compiled is None:
            self._compiled = self._compile()
        driver: Any = import_module("cuda.bindings.driver")
        torch_cuda: Any = torch.cuda
        stream = driver.CUstream(torch_cuda.current_stream().cuda_stream)
        self._compiled.call(*self._arguments, stream)
        return self._compiled


def element_type(dtype: str) -> Any:
    """CuTe's type of that name, as `_tensors.dtype_of` gives torch's."""
    cutlass: Any = import_module("cutlass")
    return {"bf16": cutlass.BFloat16, "fp16": cutlass.Float16, "fp32": cutlass.Float32}[dtype]


def stand_in(kind: Any, *sizes: int | None) -> Any:
    """A contiguous row-major tensor on a GPU that is not there; None is a size known at launch.

    Where the last size is known, rows are aligned to 16 bytes, else elements to their size.
    """
    cute: Any = import_module("cutlass.cute")
    shape = tuple(cute.sym_int32() if size is None else size for size in sizes)
    order = tuple(reversed(range(len(sizes))))
    return cute.runtime.make_fake_compact_tensor(
        kind, shape, stride_order=order, assumed_align=_alignment(kind.width // 8, sizes)
    )


def argument(tensor: torch.Tensor, *sizes: int | None) -> Any:
    """A contiguous tensor as the argument that `stand_in` with these sizes stands for."""
    cute: Any = import_module("cutlass.cute")
    if not tensor.is_contiguous():
        raise TilepassError("a CuTe kernel's tensor is not contiguous")
    alignment = _alignment(tensor.element_size(), sizes)
    if tensor.data_ptr() % alignment:
        raise TilepassError(f"a CuTe kernel's tensor is not aligned to {alignment} bytes")
    result = cute.runtime.from_dlpack(tensor.detach(), assumed_align=alignment)
    order = tuple(range(tensor.dim()))
    for mode, size in enumerate(sizes):
        if size is None:
            result = result.mark_compact_shape_dynamic(mode, stride_order=order)
    return result


def _alignment(element_bytes: int, sizes: tuple[int | None, ...]) -> int:
    row = (sizes[-1] or 0) * element_bytes
    return 16 if row and row % 16 == 0 else element_bytes


def _architecture(arch: str) -> Any:
    """The DSL's option. Raises TilepassError with the names there are."""
    known = list(import_module("cutlass.base_dsl.enums").Arch.__members__)
    if arch not in known:
        raise TilepassError(
            f"the CuTe DSL knows no architecture '{arch}'{nearest(arch, known)} "
            f"(architectures: {', '.join(known)})"
        )
    return import_module("cutlass.cute").GPUArch(arch)


def _text(kept: Any) -> str:
    """What KeepPTX kept. Raises TilepassError where the DSL left nothing."""
    if not isinstance(kept, str) or ".entry" not in kept:
        raise TilepassError("the CuTe DSL kept no PTX of the kernel")
    return kept


def _bytes(kept: Any) -> bytes:
    if not isinstance(kept, bytes):
        raise TilepassError("the CuTe DSL kept no binary of the kernel")
    return kept


def cute_workload_names() -> tuple[str, ...]:
    """The names that `get_cute_workload` knows, sorted."""
    return _NAMES


def is_cute_workload(name: str) -> bool:
    """Whether `get_cute_workload` knows the name."""
    return _file_of(name) is not None


def get_cute_workload(name: str) -> CuteWorkload[Any]:
    """The workload of that file name; `-` stands for `_`, and the suffix `_cute` may be left out.

    Raises TilepassError with the nearest names when there is none, or when there is no CuTe DSL.
    """
    file = _file_of(name)
    if file is None:
        known = ", ".join(_NAMES)
        raise TilepassError(f"no CuTe kernel '{name}'{nearest(name, _NAMES)} (kernels: {known})")
    try:
        return import_module(f"tilepass.kernels.{file}").WORKLOAD
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("cutlass"):
            raise TilepassError(f"kernel '{name}' needs nvidia-cutlass-dsl 4.6 or later") from error
        raise


def _file_of(name: str) -> str | None:
    wanted = name.replace("-", "_")
    return next((n for n in (wanted, f"{wanted}_cute") if n in _NAMES), None)
