"""Running a backend's stage function so that its passes can be run by someone else.

A stage function builds a pass manager, adds passes and runs it. Its code object is instantiated
again with globals in which libtriton's modules are replaced by stand-ins that record the passes;
the pipeline itself is never copied, and nothing global is touched.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any, cast

from triton._C import libtriton

from tilepass.frontends.triton.builtin_passes import Adder, pass_name, pass_text

_triton_ir: Any = libtriton.ir

Stage = Callable[[Any, Any], Any]


class ModuleStandIn:
    """Stands for an `ir.module` in a stage function; the module behind it can be exchanged."""

    __slots__ = ("module",)

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def __str__(self) -> str:
        return str(self.module)


@dataclass(frozen=True)
class RecordedPass:
    """One call of an `add_*` function: `adder(manager, *arguments)`."""

    adder: Adder
    arguments: tuple[Any, ...]

    def name(self, context: Any) -> str:
        """The pass's textual name."""
        return pass_name(self.adder, self.arguments, context)

    def text(self, context: Any) -> str:
        """The pass's textual name with its options."""
        return pass_text(self.adder, self.arguments, context)


@dataclass
class RecordingPassManager:
    """Takes the place of `ir.pass_manager`; `on_run(manager, module, tag)` runs what it holds."""

    context: Any
    on_run: Callable[[RecordingPassManager, ModuleStandIn, str], None]
    passes: list[RecordedPass] = field(default_factory=list[RecordedPass])
    debug: bool = False

    def enable_debug(self) -> Any:
        """As of `ir.pass_manager`: whether the user asked for dumps."""
        self.debug = True
        return _triton_ir.pass_manager(self.context).enable_debug()

    def get_pipeline_str(self) -> str:
        """As of `ir.pass_manager`."""
        return self.build(self.passes).get_pipeline_str()

    def run(self, module: Any, tag: str) -> None:
        """As of `ir.pass_manager`."""
        stand_in = module if isinstance(module, ModuleStandIn) else ModuleStandIn(module)
        self.on_run(self, stand_in, tag)

    def build(self, passes: list[RecordedPass], context: Any = None) -> Any:
        """A real pass manager, set up like this one, that holds `passes`.

        `context` is that of the module that it is to run on, if it is not this manager's.
        """
        manager = _triton_ir.pass_manager(context or self.context)
        if self.debug:
            manager.enable_debug()
        for recorded in passes:
            recorded.adder(manager, *recorded.arguments)
        return manager


class _Namespace:
    """Stands for a module of libtriton: records calls on a manager, unwraps modules in others."""

    def __init__(self, module: ModuleType, make_manager: Callable[[Any], Any]) -> None:
        self._module = module
        self._make_manager = make_manager

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._module, name)
        if isinstance(member, ModuleType):
            return _Namespace(member, self._make_manager)
        if member is _triton_ir.pass_manager:
            return self._make_manager
        if isinstance(member, type) or not callable(member):
            return member
        return _recorded(member)


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if arguments and isinstance(arguments[0], RecordingPassManager):
            arguments[0].passes.append(RecordedPass(function, arguments[1:]))
            return None
        return function(*map(_unwrap, arguments), **named)

    return call


def _unwrap(value: Any) -> Any:
    return value.module if isinstance(value, ModuleStandIn) else value


class _RecordingBackend:
    """Stands for a backend; its stage functions see libtriton through recording stand-ins."""

    def __init__(self, backend: Any, make_manager: Callable[[Any], Any]) -> None:
        self._backend = backend
        self._make_manager = make_manager

    def __getattr__(self, name: str) -> Any:
        member: Any = inspect.getattr_static(self._backend.__class__, name, None)
        if isinstance(member, staticmethod):
            return self._rebound(member.__func__)
        if isinstance(member, FunctionType):
            return self._rebound(member).__get__(self)
        return getattr(self._backend, name)

    def _rebound(self, function: Any) -> Any:
        if not isinstance(function, FunctionType):
            return function
        names = function.__globals__.copy()
        for name in _libtriton_names(function):
            names[name] = _Namespace(names[name], self._make_manager)
        return copy_function(function, names, function.__closure__)


@functools.cache
def _libtriton_names(function: FunctionType) -> tuple[str, ...]:
    """The globals of `function` that are modules of libtriton: `ir`, `passes`, `nvidia`, ..."""
    return tuple(
        name
        for name, value in function.__globals__.items()
        if isinstance(value, ModuleType) and value.__name__.startswith(libtriton.__name__)
    )


def is_stock(stage: Stage, backend: Any) -> bool:
    """Whether a stage is the backend's own function, not one that someone put in its place."""
    return (
        isinstance(stage, FunctionType)
        and stage.__globals__ is vars(sys.modules[type(backend).__module__])
        and any(cell.cell_contents is backend for cell in stage.__closure__ or ())
    )


def record_stage(
    stage: Stage,
    backend: Any,
    on_run: Callable[[RecordingPassManager, ModuleStandIn, str], None],
) -> Stage:
    """The stock stage function with `on_run` in place of running a pass manager.

    It takes a ModuleStandIn and returns one, or what the stage makes of the module.
    """
    recording = _RecordingBackend(backend, lambda context: RecordingPassManager(context, on_run))
    function = cast("FunctionType", stage)
    closure = tuple(
        CellType(recording) if cell.cell_contents is backend else cell
        for cell in function.__closure__ or ()
    )
    return copy_function(function, function.__globals__, closure)


def copy_function(
    function: FunctionType, names: dict[str, Any], closure: tuple[CellType, ...] | None
) -> FunctionType:
    """The same code with other globals and cells."""
    copied = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, closure
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied
