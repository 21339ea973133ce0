"""What Triton runs between its front end and the fusion of loops."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.recording import (
    ModuleStandIn,
    RecordingPassManager,
    record_stage,
)
from tilepass.ir import engine

FUSION = "tritongpu-fuse-nested-loops"
_ARCH = 90
_STAGES = ("ttir", "ttgir")
_EMPTY = "tt.func public @empty() { tt.return }"


class Lowering:
    """The passes that a compilation for sm_90 runs before fusion, as the backend adds them."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._managers: list[RecordingPassManager] = []
        self._record()

    def _record(self) -> None:
        compiler: Any = import_module("triton.compiler.compiler")
        target: Any = import_module("triton.backends.compiler").GPUTarget("cuda", _ARCH, 32)
        language: Any = import_module("triton.backends.compiler").Language.TRITON
        backend = compiler.make_backend(target)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, backend.parse_options({"arch": f"sm{_ARCH}"}), language)
        for name in _STAGES:
            empty = ModuleStandIn(bridge.load(_EMPTY, "empty.mlir", self._context))
            record_stage(stages[name], backend, self._keep)(empty, {})

    def _keep(self, manager: RecordingPassManager, module: ModuleStandIn, tag: str) -> None:
        del module, tag
        names = [each.name(self._context) for each in manager.passes]
        if FUSION in names:
            manager.passes = manager.passes[: names.index(FUSION)]
        self._managers.append(manager)

    def names(self) -> list[str]:
        """The passes' names in order."""
        return [each.name(self._context) for manager in self._managers for each in manager.passes]

    def stages(self, module: Any) -> list[engine.Module]:
        """What a module, which changes, is at the end of ttir and directly before fusion."""
        done: list[engine.Module] = []
        for manager in self._managers:
            manager.build(manager.passes).run(module, "fuzz")
            done.append(bridge.to_engine(module))
        return done
