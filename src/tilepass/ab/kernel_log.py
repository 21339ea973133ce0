"""Which kernels a launch really ran, by the hooks that Triton calls on loading and launching.

Equal timings across an ablation usually mean that a stale binary ran twice; only the binary itself
tells.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilepass.ab.events import KernelFact
from tilepass.binary.elf import code_hash
from tilepass.core.errors import TilepassError


class KernelLog:
    """Remembers every binary that Triton loads in this process, from `install` on.

    `on_load` is called when a kernel has been compiled and loaded, before its first launch.
    """

    def __init__(self, on_load: Callable[[KernelFact], None] | None = None) -> None:
        self._loaded: dict[int, KernelFact] = {}
        self._on_load = on_load

    def install(self) -> None:
        """Start to listen; before the first launch, since a kernel is loaded once."""
        _runtime().kernel_load_end_hook.add(self._note_load)

    def uninstall(self) -> None:
        """Stop listening."""
        _runtime().kernel_load_end_hook.remove(self._note_load)

    @contextmanager
    def launches(self) -> Generator[dict[str, KernelFact]]:
        """The kernels launched in the block, by binary, in the order of their first launch."""
        seen: dict[str, KernelFact] = {}

        def on_launch(metadata: Any) -> None:
            handle: int = metadata.get()["function"]
            if handle not in self._loaded:
                raise TilepassError("a kernel was launched that was loaded before the log began")
            kernel = self._loaded[handle]
            seen[kernel.code_hash] = kernel

        _runtime().launch_enter_hook.add(on_launch)
        try:
            yield seen
        finally:
            _runtime().launch_enter_hook.remove(on_launch)

    def _note_load(
        self, module: Any, function: int, name: str, metadata_group: Mapping[str, str], key: str
    ) -> None:
        kernel = kernel_fact(name, metadata_group)
        self._loaded[function] = kernel
        if self._on_load is not None:
            self._on_load(kernel)


def kernel_fact(name: str, metadata_group: Mapping[str, str]) -> KernelFact:
    """The fact about a loaded kernel from the files Triton keeps of it.

    Raises TilepassError where there is no binary among them.
    """
    for path in map(Path, metadata_group.values()):
        if path.suffix in (".cubin", ".hsaco"):
            return KernelFact(name, code_hash(path.read_bytes()), str(path))
    raise TilepassError(f"kernel '{name}': Triton's cache holds no binary of it")


def _runtime() -> Any:
    return importlib.import_module("triton.knobs").runtime
