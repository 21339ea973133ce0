"""Which bytes the modules of this process were made from, for the keys of caches.

A file may have been edited since it was imported, and Python takes a `.pyc` for its source by the
second of the change and the size alone. So tilepass's own modules, and all others that are neither
in the standard library nor installed in `site-packages`, are loaded from bytes that are kept here.
`ran` has them; `promised` those that a key was made of for modules that are yet to be imported,
which are made from these whatever their files hold by then.

Loaded when interpreters start: it imports nothing that is not there already.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder, SourceFileLoader
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

ran: dict[str, bytes] = {}
# By name, with the file that they are from.
promised: dict[str, tuple[str, bytes]] = {}
# What passes imported while they ran and no key had foreseen: no key made before holds it.
unforeseen: dict[str, bytes] = {}
# How often modules were imported anew: what was made of `ran` and `promised` before is out of date.
reloads: int = 0

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN = "tilepass."
_UNCHECKED = b"\x01\0\0\0"
_running_threads: list[int] = []


class ExecutedLoader(SourceFileLoader):
    """Python's loader of source files, keeping the bytes that the module is made from.

    A `.pyc` is used where it was made from them, as far as times, size and flags can tell.
    """

    def __init__(self, fullname: str, path: str, *, reload: bool = False) -> None:
        super().__init__(fullname, path)
        self._reload = reload or fullname in ran
        self._used = False
        self._source: bytes | None = None
        self._status: os.stat_result | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code; kept as what ran the first time, which is when it is imported."""
        global reloads
        if self._used:
            return super().get_code(fullname)
        self._used = True
        source, self._status = read(self.path)
        path, expected = promised.get(fullname, (self.path, source))
        if self._reload or path != self.path:
            promised.pop(fullname, None)
            reloads += 1
        elif source != expected:
            source, self._status = expected, None
        self._source = source
        try:
            code = super().get_code(fullname)
        finally:
            self._source = None
        ran[fullname] = source
        if promised and fullname not in promised and get_ident() in _running_threads:
            unforeseen[fullname] = source
        return code

    def path_stats(self, path: str) -> dict[str, float]:
        """The time and size that a `.pyc` must name; none will do for bytes that are not there."""
        if self._source is None:
            return dict(super().path_stats(path))
        if self._status is None:
            raise OSError("the file has been edited")
        return {"mtime": self._status.st_mtime, "size": self._status.st_size}

    def get_data(self, path: str) -> bytes:
        """The bytes of the source, or of a `.pyc` that is no older than it and is checked."""
        if self._source is None:
            return super().get_data(path)
        if path == self.path:
            return self._source
        data, status = read(path)
        edited_since = self._status is None or status.st_mtime_ns < self._status.st_mtime_ns
        if edited_since or data[4:8] == _UNCHECKED:
            raise OSError("not made from the source as it is now")
        return data


class _Finder:
    """Finds what Python's own finder of files does, and has it loaded by `ExecutedLoader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As of importlib's finders."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and spec.origin and type(spec.loader) is SourceFileLoader:
            installed = is_standard(spec.origin) or is_in_packages(spec.origin)
            if fullname.startswith(_OWN) or not installed:
                reload = target is not None
                spec.loader = ExecutedLoader(fullname, spec.origin, reload=reload)
        return spec


class Running:
    """While a pass runs in this thread: `with Running() as imported: ...`.

    `imported` then holds the names of the modules that no key had foreseen.
    """

    def __enter__(self) -> list[str]:
        """Begin to look at imports."""
        self._before = set(unforeseen)
        self._imported: list[str] = []
        _running_threads.append(get_ident())
        return self._imported

    def __exit__(self, *exception: object) -> None:
        """Say what was imported."""
        _running_threads.remove(get_ident())
        self._imported.extend(name for name in unforeseen if name not in self._before)


def is_standard(file: str) -> bool:
    """Whether a file belongs to the standard library."""
    return file.startswith(_STANDARD_LIBRARY) and not is_in_packages(file)


def is_in_packages(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    return any(part in file for part in _INSTALLED)


def is_older_than_process(status: os.stat_result) -> bool:
    """Whether a file has not been touched since this process started."""
    return max(status.st_mtime, status.st_ctime) < _STARTED


def read(path: str) -> tuple[bytes, os.stat_result]:
    with open(path, "rb", buffering=0) as file:
        while True:
            before = os.fstat(file.fileno())
            file.seek(0)
            data = file.read()
            # Whoever writes the file at this moment is waited for.
            if os.fstat(file.fileno()) == before:
                return data, before


def _start_of_process() -> float:
    """When this process started, less a little for clocks that are coarse; 0 if nobody knows."""
    import time

    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0.0
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age - 0.1


_STARTED = _start_of_process()
# Not first: finders that others put before Python's own have their reasons.
sys.meta_path.insert(
    next((at for at, each in enumerate(sys.meta_path) if each is PathFinder), len(sys.meta_path)),
    _Finder(),
)
