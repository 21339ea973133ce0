"""`dump-ir` of programs that launch kernels: what is in a cache is dumped too."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from frontend_support import REWRITE_ADD
from gpu_support import COMMAND, INDUCTOR, LAUNCHING, NEGATE_STORES, ON, environment, run

pytestmark = pytest.mark.gpu


def dump(folder: Path, pipeline: str, load: Path, *program: str) -> list[dict[str, Any]]:
    """Dump to `folder / "dump"`; returns what the program printed."""
    options = ["dump-ir", "-o", folder / "dump", "-p", pipeline, "--load", load, "--no-html", "--"]
    return run(["-c", COMMAND, *options, sys.executable, *program], environment(folder))


def kernels(folder: Path) -> dict[str, Path]:
    """Name -> folder of each kernel in the dump."""
    found = sorted(folder.glob("dump/*/compilation.json"))
    return {json.loads(file.read_text())["kernel"]: file.parent for file in found}


def test_a_launching_program(tmp_path: Path) -> None:
    file = tmp_path / "rewrite_add.py"
    file.write_text(REWRITE_ADD)
    (before,) = run([LAUNCHING], environment(tmp_path))
    (line,) = dump(tmp_path, ON, file, LAUNCHING)
    assert line["operation"] == "mul"
    folder = kernels(tmp_path)["add_kernel"]
    (difference,) = folder.glob("*-ttir-rewrite-add.diff")
    assert "\n+" in difference.read_text()
    assert re.search(r"\tmul(\.rn)?\.f32", next(folder.glob("*.ptx")).read_text())
    assert "FMUL" in next(folder.glob("*-sass.sass")).read_text()
    assert json.loads((folder / "figures.json").read_text())["registers"] > 0
    (after,) = run([LAUNCHING], environment(tmp_path))
    assert (after["hash"], after["compilations"]) == (before["hash"], [True])


def test_the_stock_kernel_of_a_program(tmp_path: Path) -> None:
    """It is in the cache, and is compiled again only to be looked at."""
    file = tmp_path / "rewrite_add.py"
    file.write_text(REWRITE_ADD)
    run([LAUNCHING], environment(tmp_path))
    (cached,) = tmp_path.glob("cache/*/*.ptx")
    stock = cached.read_text()
    (line,) = dump(tmp_path, "", file, LAUNCHING)
    assert line["operation"] == "add"
    (ptx,) = kernels(tmp_path)["add_kernel"].glob("*.ptx")
    assert ptx.read_text() == cached.read_text() == stock


def test_a_program_with_torch_compile(tmp_path: Path) -> None:
    """Its caches are full when it is dumped, and are as they were afterwards."""
    file = tmp_path / "negate_stores.py"
    file.write_text(NEGATE_STORES)
    program = (INDUCTOR, "softmax", "as-it-is")
    run(program, environment(tmp_path))
    (line,) = dump(tmp_path, "negate-stores", file, *program)
    assert line["softmax"] == "-"
    (folder,) = {path for name, path in kernels(tmp_path).items() if "softmax" in name}
    (difference,) = folder.glob("*-ttir-negate-stores.diff")
    assert "+" in difference.read_text()
    assert list(folder.glob("*-sass.sass"))
    (line,) = run(program, environment(tmp_path))
    assert line["softmax"] == "+"
