"""Putting a GPU that is not there into a program, and saying at its end what was compiled."""

from __future__ import annotations

import ast
import atexit
import functools
import importlib
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from tilepass.after_import import AfterImport
from tilepass.core.pass_base import Target
from tilepass.without_gpu.driver import Driver, compile_only

_SHOWN_NAMES = 8
_driver: Driver | None = None
_told: set[str] = set()
_checks_cannot_hold = False


def stand_in_for_gpu(target: Target, *, all_configurations: bool) -> None:
    """Let this process find a GPU of the target when it imports torch or Triton."""
    for module, stand_in in STAND_INS.items():
        if module in sys.modules:
            stand_in(target, all_configurations)
        else:
            AfterImport(module, functools.partial(stand_in, target, all_configurations))


@contextmanager
def standing_in(target: Target) -> Generator[None]:
    """In the block Triton finds a GPU of the target, for files that ask for one when they are
    imported; so does torch, from then on, whose place is not given back."""
    stand_in = functools.partial(_stand_in_for_torch, target, False)
    if "torch" in sys.modules:
        stand_in()
    waiting = None if "torch" in sys.modules else AfterImport("torch", stand_in)
    try:
        with compile_only(target):
            yield
    finally:
        if waiting is not None:
            waiting.cancel()


def _stand_in_for_torch(target: Target, _: bool) -> None:
    """After `import torch`: the program finds a GPU of the target."""
    importlib.import_module("tilepass.without_gpu.torch_cuda").install(target)
    testing: Any = importlib.import_module("torch.testing")
    testing.assert_close = _unless_launched(testing.assert_close)
    torch: Any = importlib.import_module("torch")
    for name in ("allclose", "equal"):
        setattr(torch, name, _unless_asserted(getattr(torch, name)))


def _unless_launched(check: Any) -> Any:
    """A comparison of results; after a launch one that fails is said, and the program goes on."""

    def assert_close(*arguments: Any, **named: Any) -> None:
        try:
            check(*arguments, **named)
        except AssertionError as error:
            if not _has_launched():
                raise
            _tell_of_check(error, traceback.extract_stack()[:-1])

    return assert_close


def _unless_asserted(compare: Any) -> Any:
    """A comparison of results; where an `assert` stands on it, as above."""

    def compare_results(*arguments: Any, **named: Any) -> bool:
        if compare(*arguments, **named):
            return True
        frames = traceback.extract_stack(limit=2)[:1]
        if not _has_launched() or not _is_in_assert(frames[0]):
            return False
        _tell_of_check(AssertionError(f"not {compare.__name__}"), frames)
        return True

    return compare_results


@functools.cache
def _assert_lines(file: str) -> frozenset[int]:
    """The lines of the assertions in a file of Python."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return frozenset()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    lines = [range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in found]
    return frozenset(line for each in lines for line in each)


def _is_in_assert(frame: traceback.FrameSummary) -> bool:
    return frame.lineno in _assert_lines(frame.filename)


def _has_launched() -> bool:
    return _driver is not None and _driver.launches > 0


def _tell_of_check(error: BaseException, frames: Sequence[traceback.FrameSummary]) -> None:
    """One line, the first time that a check fails at its place."""
    own = [frame for frame in frames if f"{os.sep}site-packages{os.sep}" not in frame.filename]
    frame = (own or frames)[-1]
    place = f"{frame.filename}:{frame.lineno}"
    if place in _told:
        return
    _told.add(place)
    said = (str(error).strip().splitlines() or ["AssertionError"])[0]
    print(
        f"note: {place}: the program's own check cannot hold without a GPU, no kernel has written "
        f"what it compares: {said}",
        file=sys.stderr,
    )


def _stand_in_for_driver(target: Target, all_configurations: bool) -> None:
    """After `import triton`: launches compile for the target and do nothing else.

    An autotuner compiles its configurations up to the first that fits, or all of them.
    """
    global _driver
    _driver = Driver(target, target.shared_bytes or 1 << 30)
    importlib.import_module("triton.runtime.driver").driver.set_active(_driver)
    testing: Any = importlib.import_module("triton.testing")
    testing.do_bench = testing.do_bench_cudagraph = _called_once
    if target.backend == "cuda":
        # What tutorials compare with; its library comes with a GPU's driver.
        native: Any = importlib.import_module("triton._C.libtriton")
        native.nvidia.cublas.CublasLt = _NoLibrary
    tuner: Any = importlib.import_module("triton.runtime.autotuner").Autotuner
    # What was not measured must not be found by a program that runs.
    tuner.check_disk_cache = _measured_anew
    if not all_configurations:
        tuner._bench = _up_to_the_first(tuner._bench)
    atexit.register(_end)
    sys.excepthook = _excepthook(sys.excepthook)


def _measured_anew(tuner: Any, key: Any, configs: Any, measure: Callable[[], None]) -> bool:
    """Of `check_disk_cache`; returns whether a cache had the choice."""
    measure()
    return False


def nothing(*_: Any, **__: Any) -> None:
    """What there is to do for a GPU that is not there."""


class _NoLibrary:
    """A library of the GPU's vendor: its calls do nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return nothing


def _up_to_the_first(bench: Any) -> Any:
    """Measures no configuration after one that compiled, in each choice of an autotuner."""

    def _bench(tuner: Any, *arguments: Any, config: Any, **named: Any) -> Any:
        # A tuner has these anew each time that it is called.
        if getattr(tuner, "_tilepass_chosen", None) is tuner.nargs:
            return [float("inf")] * 3
        timings = bench(tuner, *arguments, config=config, **named)
        if timings[0] != float("inf"):
            tuner._tilepass_chosen = tuner.nargs
        return timings

    return _bench


def _called_once(
    function: Any, *_: object, quantiles: Any = None, return_mode: str = "mean", **__: object
) -> Any:
    """Of `do_bench`: the function is called, and its time is not a number."""
    function()
    if quantiles is not None:
        return [float("nan")] * len(quantiles) if len(quantiles) > 1 else float("nan")
    return [float("nan")] if return_mode == "all" else float("nan")


def is_check(error: BaseException) -> bool:
    """Whether an error is that of a check that cannot hold without a GPU, which is said then."""
    if not isinstance(error, AssertionError) or not _has_launched():
        return False
    _tell_of_check(error, traceback.extract_tb(error.__traceback__))
    return True


def _excepthook(previous: Any) -> Any:
    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        global _checks_cannot_hold
        if is_check(error):
            _checks_cannot_hold = True
        else:
            previous(kind, error, trace)

    return excepthook


STAND_INS = {"torch": _stand_in_for_torch, "triton": _stand_in_for_driver}


def _end() -> None:
    """The last line; the first registered of `atexit` is the last to run."""
    if _driver is None:
        return
    if not _driver.loaded:
        print(
            f"no kernel was launched on the {_driver.target} that was stood in for",
            file=sys.stderr,
            flush=True,
        )
    else:
        _tell_of_kernels(_driver)
    if _checks_cannot_hold:
        if sys.stdout:
            sys.stdout.flush()
        # The interpreter would end with 1.
        os._exit(0)


def _tell_of_kernels(driver: Driver) -> None:
    names = sorted(set(driver.loaded.values()))
    shown = ", ".join(names[:_SHOWN_NAMES]) + (", ..." if len(names) > _SHOWN_NAMES else "")
    count = len(driver.loaded)
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    listed = f" ({shown})" if names else ""
    print(
        f"compiled {kernels} for {driver.target}{listed}; none was run: {driver.launches} "
        "launches did nothing",
        file=sys.stderr,
        flush=True,
    )
