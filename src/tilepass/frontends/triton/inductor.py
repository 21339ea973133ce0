"""torch.compile under a pipeline: Inductor's own keys, and its compile workers.

Inductor keeps compiled graphs and tuning results under keys that know Triton's version, but not
its inspection hook. Its workers are processes that have a pipeline only from the environment.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tilepass.after_import import AfterImport

# The module that makes the keys; Inductor's configuration is complete when it is imported.
_INDUCTOR = "torch._inductor.codecache"
# The custom graph pass whose `uuid` carries the key. Any would do; this one is rarely used, and
# called for training graphs alone.
_CARRIER = "joint_custom_pre_pass"


def under_pipeline(key: str, *, workers_follow: bool) -> ExitStack:
    """Make Inductor tell pipelines apart, now or when it is imported; undone by closing.

    Without `workers_follow` the worker processes would compile with another pipeline than this
    process: compilation happens in this process then.
    """
    undo = ExitStack()
    if _is_imported(_INDUCTOR):
        _apply(undo, key, workers_follow)
    else:
        waiting = AfterImport(_INDUCTOR, lambda: _apply(undo, key, workers_follow))
        undo.callback(waiting.cancel)
    return undo


def forget_compiled() -> None:
    """Let functions that torch.compile has compiled be compiled again when they are next called.

    They hold kernels of the pipeline that was in force, and nothing would look at it again.
    """
    if _is_imported("torch._dynamo"):
        importlib.import_module("torch.compiler").reset()


def _is_imported(name: str) -> bool:
    """Whether a module is there, and not just on its way."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


def _apply(undo: ExitStack, key: str, workers_follow: bool) -> None:
    config: Any = importlib.import_module("torch._inductor.config")
    changes: dict[str, Any] = {}
    if key:
        changes[_CARRIER] = _with_carrier(getattr(config, _CARRIER), key)
        _change_backend_hash(undo, key)
    if not workers_follow:
        changes["compile_threads"] = 1
    undo.enter_context(config.patch(changes))


def _with_carrier(present: Any, key: str) -> Any:
    """The custom pass or passes that are there, and one that does nothing but have a `uuid`."""
    module: Any = importlib.import_module("torch._inductor.custom_graph_pass")

    class PipelineKey(module.CustomGraphPass):
        def __call__(self, graph: Any) -> None:
            del graph

        def uuid(self) -> str:
            return key

    class WithPipelineKey(module.CustomGraphPass):
        def __call__(self, graph: Any) -> None:
            present(graph)

        def uuid(self) -> Any:
            # None keeps Inductor from caching what a pass without a `uuid` has changed.
            own = present.uuid() if isinstance(present, module.CustomGraphPass) else None
            return own and (key, own)

    if present is None:
        return PipelineKey()
    if hasattr(module, "get_custom_graph_passes"):
        return [*module.get_custom_graph_passes(present), PipelineKey()]
    return WithPipelineKey()


def _change_backend_hash(undo: ExitStack, key: str) -> None:
    """The hash is in the keys of tuning results, and in the source text of generated kernels."""
    module: Any = importlib.import_module("torch.utils._triton")
    original: Callable[[], str] = module.triton_hash_with_backend

    def triton_hash_with_backend() -> str:
        return hashlib.sha256((original() + key).encode()).hexdigest().upper()

    module.triton_hash_with_backend = triton_hash_with_backend
    undo.callback(setattr, module, "triton_hash_with_backend", original)
