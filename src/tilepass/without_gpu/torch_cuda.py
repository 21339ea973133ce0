"""torch without a GPU as a program sees it with one: "cuda" tensors lie in the host's memory.

Tensors that the program did not put on the CPU itself say that they are on `cuda:0`. Large products
and convolutions are not computed and hold NaN; large tensors of random numbers hold zeros.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, Literal, Self, cast

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from tilepass.core.pass_base import Target
from tilepass.without_gpu.devices import device_of

Where = Literal["cuda", "cpu"]

# About a second of one core each: operations of a product, random numbers of a tensor.
MOST_FLOPS = 10**10
MOST_RANDOM = 10**7
_MARK = "_tilepass_on_cpu"
_CPU, _CUDA = torch.device("cpu"), torch.device("cuda", 0)


def install(target: Target) -> None:
    """Let this process find one GPU of the target, for the rest of its life."""
    for owner, names in _replacements(target):
        for name, value in names.items():
            setattr(owner, name, value)
    # As of `Tensor.backward` below.
    _torch.autograd.has_torch_function = _always(False)
    _CudaOnCpu().__enter__()
    run = threading.Thread.run

    def run_in_mode(thread: threading.Thread) -> None:
        # A mode is of the thread that enters it.
        with _CudaOnCpu():
            run(thread)

    cast("Any", threading.Thread).run = run_in_mode


class _CudaOnCpu(TorchFunctionMode):
    """Every call of torch with the CPU where it says "cuda"."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named: dict[str, Any] = dict(kwargs or {})
        if func is _tensor.backward:
            # Functions of the program's own are called in it, and call torch.
            if "gradient" in named:
                named["grad_tensors"] = named.pop("gradient")
            with self:
                return torch.autograd.backward(*args, **named)
        if func in _ANSWERS:
            return _ANSWERS[func](*args, **named)
        given = list(_tensors((args, list(named.values()))))
        asked = _asked_for(func, args, named)
        moved = func in _MOVES
        if "pin_memory" in named:
            named["pin_memory"] = False
        if func is _tensor.cuda:
            func, args, named = _tensor.to, (args[0], _CPU), {}
        elif asked is not None:
            args, named = _on_cpu(func, args, named)
        result = _called(func, args, named)
        where = asked or ("cuda" if any(map(_is_cuda, given)) else "cpu" if given else _default)
        return _placed(result, where, given, moved=moved)


def _called(func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a function gives; NaN for more than MOST_FLOPS, zeros for more than MOST_RANDOM."""
    if named.get("out") is not None or not (func in _FLOPS or func in _RANDOM):
        return func(*args, **named)
    if func in _FILLS:
        return args[0] if args[0].numel() > MOST_RANDOM else func(*args, **named)
    on_meta = named
    if func in _RANDOM:
        on_meta = {**named, "device": "meta"}
        on_meta.pop("generator", None)
    moved: Any = tree_map_only(torch.Tensor, lambda each: each.to("meta"), (args, on_meta))
    result: Any = func(*moved[0], **moved[1])
    given = list(_tensors((args, list(named.values()))))
    few = (
        result.numel() <= MOST_RANDOM
        if func in _RANDOM
        else _FLOPS[func](given, result) <= MOST_FLOPS
    )
    if few:
        return func(*args, **named)
    if func in _RANDOM:
        return torch.zeros_like(result, device="cpu", requires_grad=result.requires_grad)
    return cast("Any", _NotComputed).apply(result, *given)


class _NotComputed(torch.autograd.Function):
    """NaN in the form of a result on the meta device, with gradients that are NaN too."""

    @staticmethod
    def forward(ctx: Any, form: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        ctx.given = given
        return _not_known(form)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, *map(_not_known, ctx.given)


def _not_known(form: torch.Tensor) -> torch.Tensor:
    value = float("nan") if form.is_floating_point() else 0
    return torch.full_like(form, value, device="cpu")


def _flops_of_product(given: list[torch.Tensor], result: torch.Tensor) -> int:
    """Of a product of the last two tensors; a tensor that is added comes first."""
    return 2 * result.numel() * given[-2].shape[-1]


def _flops_of_linear(given: list[torch.Tensor], result: torch.Tensor) -> int:
    return 2 * result.numel() * given[0].shape[-1]


def _flops_of_einsum(given: list[torch.Tensor], result: torch.Tensor) -> int:
    """At most: as if no index were summed early."""
    return 2 * result.numel() * max(each.numel() for each in given)


def _flops_of_attention(given: list[torch.Tensor], result: torch.Tensor) -> int:
    return 4 * result.numel() * given[1].shape[-2]


def _flops_of_convolution(given: list[torch.Tensor], result: torch.Tensor) -> int:
    return 2 * result.numel() * given[1][0].numel()


_tensor: Any = torch.Tensor
_torch: Any = torch
_FLOPS: dict[Any, Callable[[list[torch.Tensor], torch.Tensor], int]] = {
    **dict.fromkeys(
        (
            torch.matmul,
            torch.mm,
            torch.bmm,
            torch.addmm,
            torch.baddbmm,
            _tensor.matmul,
            _tensor.__matmul__,
            _tensor.mm,
            _tensor.bmm,
        ),
        _flops_of_product,
    ),
    functional.linear: _flops_of_linear,
    torch.einsum: _flops_of_einsum,
    functional.scaled_dot_product_attention: _flops_of_attention,
    **dict.fromkeys((torch.conv1d, torch.conv2d, torch.conv3d), _flops_of_convolution),
}

_FILLS = (_tensor.normal_, _tensor.uniform_, _tensor.random_)
_RANDOM = {
    *_FILLS,
    torch.rand,
    torch.randn,
    torch.randint,
    torch.rand_like,
    torch.randn_like,
    torch.randint_like,
}


# Each a separate function: torch.compile tells torch's functions by what they are.
def _always(value: Any) -> Callable[..., Any]:
    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def _is_cuda(tensor: torch.Tensor) -> bool:
    return not getattr(tensor, _MARK, False)


def _tensors(values: object) -> Iterator[torch.Tensor]:
    """The tensors in the arguments of a call, and in lists and tuples among them."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for each in cast("Iterable[object]", values):
            yield from _tensors(each)


def _where(value: object) -> Where | None:
    """Where a value that may be a device is; None for what is none."""
    if isinstance(value, torch.device):
        return "cuda" if value.type == "cuda" else "cpu" if value.type == "cpu" else None
    if isinstance(value, str):
        kind = value.partition(":")[0]
        return "cuda" if kind == "cuda" else "cpu" if kind == "cpu" else None
    # A number is that of a GPU; True is a number too.
    return "cuda" if isinstance(value, int) and not isinstance(value, bool) else None


def _asked_for(func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Where | None:
    if func is _tensor.cuda:
        return "cuda"
    if func is _tensor.cpu:
        return "cpu"
    if named.get("device") is not None:
        return _where(named["device"])
    if func is _tensor.to:
        other = named.get("other", args[1] if len(args) > 1 else None)
        if isinstance(other, torch.Tensor):
            return "cuda" if _is_cuda(other) else "cpu"
        return _where(other)
    return None


def _on_cpu(
    func: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with the CPU for the device."""
    changed = dict(named)
    if changed.get("device") is not None:
        changed["device"] = _CPU
    if func is _tensor.to and len(args) > 1 and _where(args[1]) is not None:
        args = (args[0], _CPU, *args[2:])
    return args, changed


def _placed(result: Any, where: Where, given: list[torch.Tensor], *, moved: bool) -> Any:
    """The result, marked where it is on the CPU; a copy where a move to it changed nothing."""
    if isinstance(result, torch.Tensor):
        is_given = any(result is each for each in given)
        if is_given and moved and _is_cuda(result) != (where == "cuda"):
            result, is_given = result.clone(), False
        if where == "cpu" and not is_given:
            setattr(result, _MARK, True)
        return result
    if isinstance(result, list | tuple):
        for each in cast("Iterable[object]", result):
            _placed(each, where, given, moved=False)
    return cast("Any", result)


def _device(tensor: torch.Tensor, *_: object) -> torch.device:
    device: torch.device = tensor.device
    return _CUDA if device.type == "cpu" and _is_cuda(tensor) else device


def _says_cuda(tensor: torch.Tensor, *_: object) -> bool:
    return _device(tensor).type == "cuda"


def _says_cpu(tensor: torch.Tensor, *_: object) -> bool:
    return _device(tensor).type == "cpu"


def _device_number(tensor: torch.Tensor) -> int:
    return 0 if _says_cuda(tensor) else -1


def _itself(tensor: torch.Tensor, *_: object) -> torch.Tensor:
    return tensor


def _set_data(tensor: torch.Tensor, data: torch.Tensor) -> None:
    tensor.data = data
    setattr(tensor, _MARK, not _is_cuda(data))


_MOVES = (_tensor.to, _tensor.cuda, _tensor.cpu)
_ANSWERS: dict[Any, Callable[..., Any]] = {
    _tensor.device.__get__: _device,
    _tensor.is_cuda.__get__: _says_cuda,
    _tensor.is_cpu.__get__: _says_cpu,
    _tensor.get_device: _device_number,
    _tensor.data.__set__: _set_data,
    _tensor.pin_memory: _itself,
    _tensor.record_stream: _always(None),
    _tensor.is_pinned: _always(False),
}
_default: Where = "cpu"


def _set_default_device(device: object) -> None:
    """Of `torch.set_default_device`, whose own mode would come after the one here."""
    global _default
    _default = "cuda" if _where(device) == "cuda" else "cpu"


class _Stream:
    """A stream of a GPU on which nothing is ever under way."""

    cuda_stream = 0
    device = _CUDA
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record_event(self, event: _Event | None = None) -> _Event:
        event = event or _Event()
        event.record()
        return event

    def query(self) -> bool:
        return True

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Nobody waits for a GPU that is not there."""

    synchronize = wait_event = wait_stream = _nothing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Event:
    """An event; the time between two is that of the host."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at = 0.0

    def record(self, *_: Any) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds of the host, never 0: programs divide by it."""
        return max(1e3 * (end._at - self._at), 1e-6)

    def query(self) -> bool:
        return True

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Nobody waits for a GPU that is not there."""

    synchronize = wait = _nothing


class _Graph:
    """A CUDA graph: what is captured runs as it is captured, a replay does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def _nothing(self, *_: Any, **__: Any) -> None:
        """There is nothing to launch on."""

    replay = reset = capture_begin = capture_end = enable_debug_mode = debug_dump = _nothing

    def pool(self) -> tuple[int, int]:
        return 0, 0


def _block() -> Callable[..., AbstractContextManager[None]]:
    """`torch.cuda.device(0)`, `stream(s)`, `graph(g)`: blocks as any other."""

    def block(*_: Any, **__: Any) -> AbstractContextManager[None]:
        return nullcontext()

    return block


class _Generator(torch.Generator):
    """A generator of random numbers on any device."""

    def __new__(cls, device: object = None) -> Self:
        del device
        return super().__new__(cls)

    def __init__(self, device: object = None) -> None:
        """The numbers come from the host, whatever the device."""


def _properties(target: Target) -> SimpleNamespace:
    device = device_of(target)
    major, minor = _capability(target)
    shared = target.shared_bytes or 0
    return SimpleNamespace(
        name=device.name,
        major=major,
        minor=minor,
        total_memory=device.memory,
        multi_processor_count=device.processors,
        max_threads_per_multi_processor=device.threads,
        max_threads_per_block=1024,
        regs_per_multiprocessor=device.registers,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared + 1024,
        warp_size=target.warp_size,
        L2_cache_size=device.l2,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName=str(target.arch),
        uuid="00000000-0000-0000-0000-000000000000",
    )


def _capability(target: Target) -> tuple[int, int]:
    return divmod(target.arch, 10) if isinstance(target.arch, int) else (9, 4)


def _replacements(target: Target) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What is put in the place of torch's own, by owner and name."""
    properties = _properties(target)
    major, minor = _capability(target)
    memory = properties.total_memory
    stream = _Stream()
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": properties.name,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "get_arch_list": [f"sm_{target.arch}"],
        "is_bf16_supported": True,
        "is_tf32_supported": True,
        "is_current_stream_capturing": False,
        "mem_get_info": (memory, memory),
        "memory_stats": {},
        "get_rng_state": torch.get_rng_state(),
        "current_stream": stream,
        "default_stream": stream,
        "current_blas_handle": 0,
        "graph_pool_handle": (0, 0),
        "can_device_access_peer": False,
    }
    zero = (
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "initial_seed",
        "utilization",
    )
    ignored = (
        "init",
        "_lazy_init",
        "synchronize",
        "set_device",
        "set_stream",
        "empty_cache",
        "ipc_collect",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_per_process_memory_fraction",
    )
    yield (
        torch.cuda,
        {
            **{name: _always(value) for name, value in answers.items()},
            **{name: _always(0) for name in zero},
            **{name: _always(None) for name in ignored},
            **{name: _block() for name in ("device", "device_of", "stream", "graph")},
            "Stream": _Stream,
            "Event": _Event,
            "CUDAGraph": _Graph,
        },
    )
    nvtx = {name: _always(None) for name in ("range_push", "range_pop", "mark")}
    yield torch.cuda.nvtx, {**nvtx, "range": _block()}
    yield _torch._C, {"_cuda_getCurrentRawStream": _always(0), "_cuda_getDeviceCount": _always(1)}
    is_cuda = target.backend == "cuda"
    version: Any = torch.version
    yield (
        version,
        {
            "cuda": version.cuda or "12.8" if is_cuda else None,
            "hip": None if is_cuda else version.hip or "6.4",
        },
    )
    yield (
        torch,
        {
            "Generator": _Generator,
            "set_default_device": _set_default_device,
            "get_default_device": lambda: _CUDA if _default == "cuda" else _CPU,
        },
    )
    yield (
        _torch.accelerator,
        {
            "is_available": _always(True),
            "device_count": _always(1),
            "current_accelerator": _always(torch.device("cuda")),
            "current_device_index": _always(0),
            "current_device_idx": _always(0),
            "current_stream": _always(stream),
            "synchronize": _always(None),
            "set_device_index": _always(None),
        },
    )
