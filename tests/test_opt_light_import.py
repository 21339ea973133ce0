"""The bindings come without the DSL around them, and the DSL still works afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilepass.ir.light_import import without_package_init


def _run(code: str, *path: Path) -> str:
    prelude = f"import sys; sys.path[:0] = {[str(folder) for folder in path]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package `outer` whose `__init__` says that it runs, with a module `outer.sub`."""
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "__init__.py").write_text("from . import sub\nprint('init', sub.VALUE)\n")
    (tmp_path / "outer" / "sub.py").write_text("print('sub')\nVALUE = [1]\n")
    return tmp_path


_LIGHT = """
from tilepass.ir.light_import import without_package_init
with without_package_init("outer"):
    from outer import sub
assert "outer" not in sys.modules
"""


def test_subpackage_alone(package: Path) -> None:
    assert _run(_LIGHT, package) == "sub\n"


def test_package_later_shares_the_subpackage(package: Path) -> None:
    code = (
        "import outer\nassert outer.sub is sub and outer.__spec__.origin.endswith('__init__.py')\n"
    )
    assert _run(_LIGHT + code, package) == "sub\ninit [1]\n"
    assert _run(_LIGHT + "import outer.sub\nassert outer.sub is sub\n", package) == (
        "sub\ninit [1]\n"
    )


def test_package_before_stays(package: Path) -> None:
    assert _run("import outer\n" + _LIGHT.rsplit("assert", 1)[0], package) == "sub\ninit [1]\n"


def test_missing_package_is_named() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match="no_such_package"),
        without_package_init("no_such_package"),
    ):
        pass


def test_engine_leaves_the_dsl_unimported_and_usable() -> None:
    code = """
from tilepass.ir import engine
assert "cutlass" not in sys.modules
import cutlass, cutlass.cute
assert cutlass._mlir.ir is engine.ir
assert isinstance(cutlass.__version__, str)
"""
    _run(code)


def test_looking_at_triton_ir_leaves_the_dsl_unimported() -> None:
    code = """
from tilepass.ir import engine
module = engine.parse('''
"tt.func"() ({
^bb(%flag: i1, %x: f32):
  llvm.intr.assume %flag : i1
  %y = "arith.addf"(%x, %x) : (f32, f32) -> f32
  %z = "math.absf"(%y) : (f32) -> f32
  scf.if %flag { "ttg.any"(%z) : (f32) -> () }
  "cf.assert"(%flag) {msg = ""} : (i1) -> ()
  %p = "ub.poison"() {value = #ub.poison} : () -> f32
  "ttng.any"(%p) : (f32) -> ()
}) {function_type = (i1, f32) -> (), sym_name = "f"} : () -> ()
''')
for operation in engine.operations(module):
    assert operation.opview is not None
    for value in (*operation.operands, *operation.results):
        assert type(value).__module__ == engine.ir.Value.__module__
assert "cutlass" not in sys.modules
import cutlass, cutlass.cute
"""
    _run(code)
