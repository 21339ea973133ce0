"""Keys hold the bytes that ran: of the pass, of what it imports, and of tilepass itself."""

from __future__ import annotations

import importlib
import importlib.util
import os
import py_compile
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilepass
from tilepass import executed
from tilepass.core.digest import tool_hash, unforeseen_hash
from tilepass.core.registry import find_pass, load_file, source_hash

PASS = """
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register
{imports}

@register
class Helped(Pass):
    name, anchor = "helped", Anchor.end_of("ttir")

    def run(self, module, context):
        {lazy}
        return helper.VALUE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from; they are forgotten afterwards."""
    monkeypatch.setattr("tilepass.core.registry._registered", {})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    forget(tmp_path)


def forget(folder: Path) -> None:
    """As in a new process: nothing from the folder has been imported or looked at."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
            executed.ran.pop(name, None)
    for name, (file, _) in list(executed.promised.items()):
        if file.startswith(str(folder)):
            del executed.promised[name]
    executed.unforeseen.clear()
    executed.reloads += 1
    importlib.invalidate_caches()


def write(folder: Path, helper: str, imports: str = "import helper", lazy: str = "") -> Path:
    """A pass and its helper module; returns the pass's file."""
    (folder / "helper.py").write_text(helper)
    file = folder / "helped.py"
    file.write_text(PASS.format(imports=imports, lazy=lazy or "..."))
    return file


def hash_in_new_process(file: Path) -> str:
    """The hash of the pass in a file, with everything below its folder imported again."""
    forget(file.parent)
    load_file(file, quiet=True)
    return source_hash(find_pass("helped"))


def run() -> Any:
    """What the pass gives, which is what its helper holds."""
    nothing: Any = None
    pass_class: Any = find_pass("helped")
    return pass_class(pass_class.Options()).run(nothing, nothing)


def test_an_edited_helper_is_another_pass_and_an_old_text_the_old_one(folder: Path) -> None:
    file = write(folder, "VALUE = 2\n")
    first = hash_in_new_process(file)
    write(folder, "VALUE = 30\n")
    assert hash_in_new_process(file) != first
    assert run() == 30
    write(folder, "VALUE = 2\n")
    assert hash_in_new_process(file) == first


def test_an_edit_after_the_import_counts_for_nothing(folder: Path) -> None:
    """What is hashed is what ran, however late the hash is made."""
    file = write(folder, "VALUE = 2\n")
    first = hash_in_new_process(file)
    forget(folder)
    load_file(file, quiet=True)
    write(folder, "VALUE = 30\n", imports="import helper  # edited")
    assert source_hash(find_pass("helped")) == first
    assert run() == 2


@pytest.mark.parametrize(
    "statement",
    [
        "import helper",
        "from helper import VALUE; import helper",
        "import importlib; helper = importlib.import_module('helper')",
        "import between; helper = between.helper",
        "from package import inner; helper = inner",
        "from package.inner import helper",
        "import package.outer as helper",
    ],
)
@pytest.mark.parametrize("is_lazy", [False, True])
def test_imports_are_found_wherever_they_are(folder: Path, statement: str, is_lazy: bool) -> None:
    """In functions too; what a hash was made of is what the import then gives."""
    (folder / "between.py").write_text("import helper")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    (folder / "package" / "inner.py").write_text("import helper\nfrom helper import VALUE")
    (folder / "package" / "outer.py").write_text("from .inner import helper, VALUE")
    imports, lazy = ("", statement) if is_lazy else (statement, "")
    file = write(folder, "VALUE = 2\n", imports, lazy)
    first = hash_in_new_process(file)
    write(folder, "VALUE = 30\n", imports, lazy)
    assert run() == 2
    assert hash_in_new_process(file) != first
    assert run() == 30
    (folder / "bystander.py").write_text("VALUE = 4")
    edited = source_hash(find_pass("helped"))
    (folder / "bystander.py").write_text("VALUE = 5")
    assert hash_in_new_process(file) == edited


@pytest.mark.parametrize("way", ["reload", "anew"])
def test_a_reloaded_helper_counts_as_it_is_now(folder: Path, way: str) -> None:
    file = write(folder, "VALUE = 2\n", lazy="import helper")
    first = hash_in_new_process(file)
    write(folder, "VALUE = 30\n", lazy="import helper")
    if way == "reload":
        importlib.reload(sys.modules["helper"])
    else:
        del sys.modules["helper"]
        importlib.import_module("helper")
    reloaded = source_hash(find_pass("helped"))
    assert run() == 30
    assert reloaded != first
    assert hash_in_new_process(file) == reloaded


def test_another_file_of_that_name_is_imported_as_it_is(folder: Path) -> None:
    """A helper found elsewhere than it was foreseen: its own text runs, and the hash follows."""
    file = write(folder, "VALUE = 2\n", imports="import sys", lazy="import helper")
    first = hash_in_new_process(file)
    (folder / "first").mkdir()
    (folder / "first" / "helper.py").write_text("VALUE = 30\n")
    sys.path.insert(0, str(folder / "first"))
    assert run() == 30
    assert source_hash(find_pass("helped")) != first


def test_a_stale_pyc_is_not_what_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python compares seconds and sizes: an edit of one digit at once after the import is lost."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = write(folder, "VALUE = 2\n")
    helper = folder / "helper.py"
    os.utime(helper, ns=(10**18, 10**18))
    first = hash_in_new_process(file)
    helper.write_text("VALUE = 3\n")
    os.utime(helper, ns=(10**18 + 10**6, 10**18 + 10**6))
    # As it was when the first text was compiled.
    os.utime(importlib.util.cache_from_source(str(helper)), ns=(10**18 + 1, 10**18 + 1))
    assert hash_in_new_process(file) != first
    assert run() == 3


def test_an_unchecked_pyc_is_not_what_runs(folder: Path) -> None:
    file = write(folder, "VALUE = 2\n")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(folder / "helper.py"), invalidation_mode=mode)
    write(folder, "VALUE = 30\n")
    hash_in_new_process(file)
    assert run() == 30


def test_what_was_imported_unobserved_and_may_have_been_edited_has_a_key_of_this_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs import modules before tilepass; those older than the process are as they are."""
    file = write(folder, "VALUE = 2\n")
    observed = hash_in_new_process(file)

    def hash_of_unobserved() -> str:
        forget(folder)
        spec = importlib.util.spec_from_file_location("helper", folder / "helper.py")
        assert spec
        assert spec.loader
        sys.modules["helper"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["helper"])
        load_file(file, quiet=True)
        return source_hash(find_pass("helped"))

    assert hash_of_unobserved() != observed
    monkeypatch.setattr(executed, "_STARTED", time.time() + 1)
    assert hash_of_unobserved() == observed


def test_installed_packages_count_by_version(folder: Path) -> None:
    packages = folder / "site-packages"
    (packages / "library").mkdir(parents=True)
    (packages / "library" / "__init__.py").write_text("VALUE = 1\n")
    (packages / "library-1.0.dist-info").mkdir()
    (packages / "other-1.0.dist-info").mkdir()
    sys.path.insert(0, str(packages))
    file = write(folder, "from library import VALUE\n")
    first = hash_in_new_process(file)
    (packages / "other-1.0.dist-info").rename(packages / "other-1.1.dist-info")
    assert hash_in_new_process(file) == first
    (packages / "library-1.0.dist-info").rename(packages / "library-1.1.dist-info")
    assert hash_in_new_process(file) != first


def test_an_installed_pass_counts_by_its_own_files(folder: Path) -> None:
    """Those of its package, wherever that is; not just by a version."""
    package = folder / "site-packages" / "of_somebody"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "helped.py").write_text(PASS.format(imports="from . import helper", lazy="..."))
    (package / "helper.py").write_text("VALUE = 2\n")
    sys.path.insert(0, str(package.parent))
    executed_start = time.time() + 1
    hashes: list[str] = []
    for text in ("VALUE = 2\n", "VALUE = 2\n", "VALUE = 30\n"):
        (package / "helper.py").write_text(text)
        forget(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(executed, "_STARTED", executed_start)
            importlib.import_module("of_somebody.helped")
            hashes.append(source_hash(find_pass("helped")))
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_pass_in_no_file_is_like_no_other(folder: Path) -> None:
    text = PASS.format(imports="", lazy="...")
    hashes: list[str] = []
    for _ in range(2):
        exec(text, {"__name__": "cell"})
        hashes.append(source_hash(find_pass("helped")))
    assert hashes[0] != hashes[1]
    assert source_hash(find_pass("helped")) == hashes[1]


def test_what_cannot_be_foreseen_is_noticed(folder: Path) -> None:
    """A name made while the pass runs: what was imported so counts from then on."""
    lazy = "import importlib; helper = importlib.import_module(''.join(['hel', 'per']))"
    hash_in_new_process(write(folder, "VALUE = 2\n", imports="", lazy=lazy))
    assert unforeseen_hash() == ""
    with executed.Running() as imported:
        run()
    assert imported == ["helper"]
    assert unforeseen_hash() != ""
    with executed.Running() as imported:
        run()
    assert imported == []


@pytest.mark.parametrize("name", ["passes.triton.strip_assume", "core.remarks", "sim"])
def test_every_module_of_tilepass_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported or not: of a pass another uses, of what every run uses, of the simulator."""
    before = tool_hash()
    module = f"tilepass.{name}"
    imported = module in sys.modules
    if imported:
        monkeypatch.setitem(executed.ran, module, b"edited")
    else:
        monkeypatch.setitem(executed.promised, module, ("", b"edited"))
    monkeypatch.setattr(executed, "reloads", executed.reloads + 1)
    assert tool_hash() != before


def test_no_file_of_tilepass_is_left_out() -> None:
    tool_hash()
    known = {*executed.ran, *executed.promised, *sys.modules}
    root = Path(tilepass.__file__).parent
    files = [file.relative_to(root.parent).with_suffix("") for file in find_files(root)]
    names = {".".join(file.parts).removesuffix(".__init__") for file in files}
    assert len(names) > 100
    assert names <= known


def find_files(folder: Path) -> Iterator[Path]:
    """The Python files below a folder, links to folders included."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from find_files(entry)
        elif entry.suffix == ".py":
            yield entry
