"""A driver that launches nothing, and an argument: Triton's way to a launch, without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triton.backends.compiler import GPUTarget


class Pointer:
    """An argument that Triton takes for a tensor of floats on the GPU."""

    dtype = "float32"

    def data_ptr(self) -> int:
        """An aligned address."""
        return 4096


class Driver:
    """As much of Triton's drivers as `kernel[grid](...)` asks for."""

    class utils:
        """As of Triton's drivers."""

        @staticmethod
        def get_device_properties(device: int) -> Mapping[str, int]:
            return {"max_shared_mem": 1 << 20, "multiprocessor_count": 132}

        @staticmethod
        def load_binary(*arguments: object) -> tuple[int, int, int, int, int]:
            return 1, 1, 0, 0, 1024

        @staticmethod
        def unload_module(module: int) -> None: ...

    @staticmethod
    def launcher_cls(compiled_source: object, metadata: object) -> Callable[..., None]:
        return lambda *arguments: None

    @staticmethod
    def get_current_device() -> int:
        return 0

    @staticmethod
    def get_current_stream(device: int) -> int:
        return 0

    @staticmethod
    def get_current_target() -> GPUTarget:
        return GPUTarget("cuda", 90, 32)
