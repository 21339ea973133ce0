"""A program that calls a CuTe function and shows which binary was served: a test's subprocess.

Usage: cute_program.py FOLDER [--child]; writes the cubin to FOLDER and prints its name, whether it
came from the DSL's cache on disk, and whether triton had been imported before the call.
"""

from __future__ import annotations

import hashlib
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cute_support import cubin_of, served, tensors


def main() -> None:
    """Call once; in a child process too, if asked to."""
    from cute_kernels import two_products

    # Where it is called: in its own module since 4.8.
    name = "compile_backend" if find_spec("cutlass.base_dsl.compile_backend") else "dsl"
    compile_backend: Any = importlib.import_module(f"cutlass.base_dsl.{name}")
    loads: list[Any] = []
    monkeypatch = pytest.MonkeyPatch()
    load = compile_backend.load_cache_from_path

    def counted(*arguments: Any, **named: Any) -> Any:
        loads.append(load(*arguments, **named))
        return loads[-1]

    monkeypatch.setattr(compile_backend, "load_cache_from_path", counted)
    imported = "with triton" if "triton" in sys.modules else "alone"
    with served(monkeypatch) as found:
        two_products(*tensors())
    cubin = cubin_of(found[0])
    file = Path(sys.argv[1], f"{hashlib.sha256(cubin).hexdigest()}.cubin")
    file.write_bytes(cubin)
    from_disk = any(one is not None for one in loads)
    print(file.name, "disk" if from_disk else "compiled", imported, flush=True)
    if "--child" in sys.argv:
        subprocess.run([sys.executable, str(Path(__file__)), sys.argv[1]], check=True)


if __name__ == "__main__":
    main()
