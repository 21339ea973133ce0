"""Entry points of packages that are in error: one line, in every command that sees them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tilepass.core import registry
from tilepass.core.errors import TilepassError
from tilepass.core.registry import find_pass, pass_names
from tilepass.doctor.self_test import check_passes
from tilepass.opt.listing import list_passes

SOURCE = """from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register

@register
class Halve(Pass):
    name = "halve-it"
    anchor = Anchor.{anchor}

    def run(self, module, context):
        pass
"""
_ANCHOR = "end_of('ttir')"


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """A package with the entry point and the anchor that the test asks for."""
    entry, anchor = request.param
    # Passes of tilepass register when they are imported, and that they are once.
    for name in pass_names():
        find_pass(name)
    (tmp_path / "halving_passes.py").write_text(SOURCE.format(anchor=anchor))
    info = tmp_path / "halving-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: halving\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tilepass.passes]\n{entry}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    monkeypatch.setattr(registry, "_registered", dict(vars(registry)["_registered"]))
    monkeypatch.delitem(sys.modules, "halving_passes", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "package",
    [("halve-it = halving_passes:Halve", _ANCHOR), ("halve-it = halving_passes", _ANCHOR)],
    indirect=True,
)
def test_a_class_or_the_module_that_registers_it(package: Path) -> None:
    del package
    assert find_pass("halve-it").__name__ == "Halve"
    assert "  halve-it @end:ttir" in list_passes().splitlines()


@pytest.mark.parametrize(
    ("package", "name", "told"),
    [
        (("half = halving_passes:Halve", _ANCHOR), "half",
         "the pass is called 'halve-it', and so must this be"),
        (("half = halving_passes", _ANCHOR), "half", "it names module 'halving_passes'; that "
         "module has halve-it = halving_passes:Halve"),
        (("halve-it = halving_passes:Nope", _ANCHOR), "halve-it", "AttributeError: module "
         "'halving_passes' has no attribute 'Nope' ({folder}/halving_passes.py)"),
        (("halve-it = no_such_module_there:X", _ANCHOR), "halve-it",
         "ModuleNotFoundError: No module named 'no_such_module_there'"),
        (("halve-it = halving_passes:Halve", "end_of('ttirr')"), "halve-it",
         "anchor 'end:ttirr': there is no such place; did you mean 'ttir' or 'ttgir'? (stages: "
         "ttir, glir, ttgir, trace) ({folder}/halving_passes.py:7, in Halve)"),
    ],
    indirect=["package"],
)  # fmt: skip
def test_what_is_wrong_is_said(package: Path, name: str, told: str) -> None:
    entry = (package / "halving-1.0.dist-info" / "entry_points.txt").read_text().splitlines()[1]
    message = f"entry point '{entry}' of halving: {told.replace('{folder}', str(package))}"
    with pytest.raises(TilepassError) as caught:
        find_pass(name)
    assert str(caught.value) == message
    assert f"  {name}: cannot be used: {message}" in list_passes().splitlines()
    (finding,) = check_passes()
    assert (finding.status, finding.advice) == ("FAIL", f"{name}: {message}")


@pytest.mark.parametrize(
    "package", [("flatten-loops = halving_passes:Halve", _ANCHOR)], indirect=True
)
def test_a_name_of_tilepass(package: Path) -> None:
    del package
    (finding,) = check_passes()
    assert finding.status == "FAIL"
    assert "of halving: a pass of tilepass has this name, and is used" in finding.advice


@pytest.mark.parametrize(
    "package", [("halve-it = halving_passes:Halve", "before('tritongpu-coalese')")], indirect=True
)
def test_a_place_at_a_pass_that_triton_does_not_have(package: Path) -> None:
    del package
    (finding,) = check_passes()
    assert finding.status == "FAIL"
    assert "its place 'before:tritongpu-coalese'; did you mean 'tritongpu-coalesce'" in (
        finding.advice
    )


@pytest.mark.parametrize("package", [("half = halving_passes:Halve", _ANCHOR)], indirect=True)
def test_the_command_line(package: Path) -> None:
    command = [sys.executable, "-m", "tilepass", "opt", "--list-passes"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(package)}
    )
    assert "half: cannot be used: entry point 'half = halving_passes:Halve'" in done.stdout
    assert done.stderr == ""
