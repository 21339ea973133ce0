"""CuTe workloads in a comparison: compiled once under each pipeline, and noted when launched."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilepass.ab.events import KernelFact
from tilepass.ab.subjects import WorkloadSubject
from tilepass.binary.elf import code_hash
from tilepass.core.errors import TilepassError
from tilepass.core.files import CACHE_VARIABLE, cache_folder
from tilepass.core.pass_base import Target
from tilepass.dump.store import write_file
from tilepass.frontends.cute.hook import key_in_force
from tilepass.frontends.cute.lowering import chip_of
from tilepass.kernels.cute_workload import get_cute_workload

if TYPE_CHECKING:
    from tilepass.ab.subjects import Launcher
    from tilepass.kernels.cute_workload import CompiledCute, CuteWorkload


class CuteSubject(WorkloadSubject):
    """A workload of CuTe kernels, and the log of what it launches (`point.Log`).

    `cute.compile` has no cache: a kernel is kept here for every configuration and pipeline.
    """

    def __init__(self, workload: CuteWorkload[Any]) -> None:
        super().__init__(workload)
        self._cute = workload
        self._compiled: dict[tuple[str, str], CompiledCute] = {}
        self._facts: dict[tuple[str, str], KernelFact] = {}
        self._listening: list[dict[str, KernelFact]] = []

    @classmethod
    def named(cls, name: str) -> CuteSubject:
        """The subject of `get_cute_workload(name)`. Raises TilepassError."""
        return cls(get_cute_workload(name))

    def launcher(self, inputs: Any, config: Any) -> Launcher:
        """As of the base class; the first call compiles under the pipeline then in force."""
        used: list[KernelFact] = []

        def compiled() -> CompiledCute:
            kernel, fact = self._kernel(config)
            used.append(fact)
            return kernel

        launch = self._cute.launch_with(inputs, config, compiled)

        def run() -> Any:
            launch()
            for seen in self._listening:
                seen[used[0].code_hash] = used[0]
            return launch.outputs

        return run

    @contextmanager
    def launches(self) -> Generator[dict[str, KernelFact]]:
        """The kernels launched in the block, by binary."""
        seen: dict[str, KernelFact] = {}
        self._listening.append(seen)
        try:
            yield seen
        finally:
            self._listening.remove(seen)

    def compile_for(self, config: Any, arch: int) -> KernelFact:
        """Compile for sm_`arch`, under the pipeline in force; needs no GPU."""
        return keep(self._cute.compile(config, chip_of(Target("cuda", arch))))

    def _kernel(self, config: Any) -> tuple[CompiledCute, KernelFact]:
        key = repr(config), key_in_force()
        if key not in self._compiled:
            self._compiled[key] = self._cute.compile(config)
            self._facts[key] = keep(self._compiled[key])
        return self._compiled[key], self._facts[key]


def keep(compiled: CompiledCute) -> KernelFact:
    """Write binary, PTX and what is known of them to where `collect_figures` finds them later, in
    another process. Raises TilepassError where the PTX names no kernel or architecture."""
    name = re.search(r"\.entry\s+(\w+)", compiled.ptx)
    target = re.search(r"^\.target\s+sm_(\d+)", compiled.ptx, re.M)
    if name is None or target is None:
        raise TilepassError("the PTX of a CuTe kernel names no kernel or no architecture")
    identity = code_hash(compiled.cubin)
    path = _folder() / f"{identity}.cubin"
    described = {
        "name": name[1],
        "target": {"backend": "cuda", "arch": int(target[1])},
        "compiled_by": "cute",
    }
    write_file(path.with_suffix(".ptx"), compiled.ptx)
    write_file(path.with_suffix(".json"), json.dumps(described))
    write_file(path, compiled.cubin)
    return KernelFact(name[1], identity, str(path))


def _folder() -> Path:
    """A folder of the user's cache. Raises TilepassError where it cannot be made."""
    folder = cache_folder("cute")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TilepassError(f"{folder}: {error.strerror} (set {CACHE_VARIABLE})") from error
    return folder
