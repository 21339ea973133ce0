"""No cache serves a binary of another pipeline: the DSL's in memory and on disk, libraries' own."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cute_support import MMAS, MMAS_OF_ONE, PASSES, compile_kernel, mmas_of, served, tensors

from tilepass.activate import enabled

pytestmark = pytest.mark.traces

LIBRARY = """
import functools
from cute_support import compile_kernel

_in_mem_compile_cache = {}

class Kernel:
    def __init__(self):
        self.function = compile_kernel()

@functools.cache
def unbounded():
    return (Kernel(), "name")

@functools.lru_cache(maxsize=4)
def bounded():
    compiled = compile_kernel()
    return lambda: compiled

@functools.cache
def unrelated():
    return object()

def keyed():
    if "key" not in _in_mem_compile_cache:
        _in_mem_compile_cache["key"] = compile_kernel()
    return _in_mem_compile_cache["key"]

def with_attribute():
    if "key" not in with_attribute.compile_cache:
        with_attribute.compile_cache["key"] = compile_kernel()
    return with_attribute.compile_cache["key"]

with_attribute.compile_cache = {}

class Compiler:
    _cache = {}

    def __init__(self):
        self.cache = {}

    @classmethod
    def of_class(cls):
        if "key" not in cls._cache:
            cls._cache["key"] = compile_kernel()
        return cls._cache["key"]

    def of_object(self):
        if "key" not in self.cache:
            self.cache["key"] = compile_kernel()
        return self.cache["key"]

compiler = Compiler()
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A library that caches compiled kernels in the ways that libraries do."""
    file = tmp_path / "library_of_kernels.py"
    file.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("library_of_kernels", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "library_of_kernels", module)
    spec.loader.exec_module(module)
    return module


def test_the_dsls_cache_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_kernels import two_products

    monkeypatch.setenv("CUTE_DSL_CACHE_DIR", str(tmp_path))
    with served(monkeypatch) as found:
        call: Any = two_products
        call(*tensors())
        call(*tensors())
        for options in ("{count=1}", "{count=2}", "{count=1}"):
            with enabled(f"drop-gemms{options}", load=[PASSES], remarks="none"):
                call(*tensors())
                call(*tensors())
        call(*tensors())
    counts = [mmas_of(one) for one in found]
    assert counts == [MMAS, MMAS, 4, 4, 0, 0, 4, 4, MMAS]
    # The same objects: they were served, not compiled again.
    assert found[0] is found[1] is found[8]
    assert found[2] is found[3] is found[6] is found[7]


def test_libraries_compile_again(library: ModuleType) -> None:
    def binaries() -> list[int]:
        kernel, _ = library.unbounded()
        compiled = (kernel.function, library.bounded()(), library.keyed(), library.with_attribute())
        compiled += (library.Compiler.of_class(), library.compiler.of_object())
        return [mmas_of(one) for one in compiled]

    unrelated = library.unrelated()
    assert binaries() == [MMAS] * 6
    with enabled("drop-gemms", load=[PASSES]) as session:
        assert binaries() == [MMAS_OF_ONE] * 6
    assert binaries() == [MMAS] * 6
    # Caches without kernels are left alone.
    assert library.unrelated() is unrelated
    assert [remark.pass_name for remark in session.remarks] == ["drop-gemms"] * 6


def test_caches_stay_where_the_passes_stay(library: ModuleType) -> None:
    kept = library.keyed()
    with enabled("flatten-loops"):
        assert library.keyed() is kept
    with enabled("drop-gemms", load=[PASSES], remarks="none"):
        rewritten = library.keyed()
        with enabled("drop-gemms", remarks="none"):
            assert library.keyed() is rewritten


def test_what_the_program_holds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {"mine": compile_kernel()}
    monkeypatch.setattr(sys.modules[__name__], "KERNELS", kernels, raising=False)
    with enabled("drop-gemms", load=[PASSES], remarks="none") as session:
        assert mmas_of(kernels["mine"]) == MMAS
    texts = {remark.message for remark in session.remarks}
    expected = "KERNELS holds kernels that were compiled before; they stay as they are"
    assert texts == {f"{__name__}.{expected}"}


@pytest.mark.parametrize("before", [None, "7"])
def test_caches_of_libraries_on_disk_are_off(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FlashInfer asks for it whenever it looks for a kernel.
    name = "FLASHINFER_CUTE_DSL_DISABLE_CACHE"
    if before is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, before)
    with enabled("flatten-loops"):
        assert os.environ.get(name) == before
    with enabled("drop-gemms", load=[PASSES]):
        assert os.environ[name] == "1"
        with enabled(""):
            assert os.environ.get(name) == before
        assert os.environ[name] == "1"
    assert os.environ.get(name) == before
