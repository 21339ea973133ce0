"""CuTe programs under `tilepass run` and TILEPASS: children, the cache on disk, versions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cute_support import PASSES, count_mmas

from tilepass.subjects.program import program_environment

pytestmark = pytest.mark.traces

PROGRAM = Path(__file__).with_name("cute_program.py")


def run(
    folder: Path, pipeline: str, *arguments: str, load: Path = PASSES
) -> subprocess.CompletedProcess[str]:
    """The program with a pipeline in its environment, and a cache of the DSL in `folder`."""
    base = {**os.environ, "CUTE_DSL_CACHE_DIR": str(folder / "cache")}
    environment = program_environment(base, pipeline, [str(load)], "passed,missed")
    command = [sys.executable, str(PROGRAM), str(folder), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def told(folder: Path, result: subprocess.CompletedProcess[str]) -> list[tuple[int, str]]:
    """What the program's processes printed: MMA instructions of the binary, and the rest."""
    assert result.returncode == 0, result.stderr
    lines = [line.split(" ", 1) for line in result.stdout.splitlines()]
    return [(count_mmas((folder / name).read_bytes()), rest) for name, rest in lines]


def test_processes_share_the_cache_on_disk(tmp_path: Path) -> None:
    """Off, on, off, on with another option, on with an edited source of the pass."""
    edited = tmp_path / "cute_passes.py"
    edited.write_text(PASSES.read_text().replace("[: self.options.count]", ""))
    stock = run(tmp_path, "")
    # Its child has the pipeline too, and finds what its parent stored.
    rewritten = run(tmp_path, "drop-gemms", "--child")
    # Passes for Triton leave CuTe alone, and a program that does not use it without Triton.
    others = run(tmp_path, "flatten-loops")
    option = run(tmp_path, "drop-gemms{count=2}")
    source = run(tmp_path, "drop-gemms", load=edited)
    assert told(tmp_path, stock) == [(8, "compiled alone")]
    assert told(tmp_path, rewritten) == [(4, "compiled alone"), (4, "disk alone")]
    assert told(tmp_path, others) == [(8, "disk alone")]
    assert told(tmp_path, option) == [(0, "compiled alone")]
    assert told(tmp_path, source) == [(0, "compiled alone")]
    assert rewritten.stderr.count("remark: [drop-gemms] passed: a gemm is dropped") == 2


def test_a_failing_pass_ends_the_program_without_a_traceback(tmp_path: Path) -> None:
    result = run(tmp_path, "break-module{raises=true}")
    assert result.returncode == 1
    assert result.stderr.startswith("error: pass 'break-module' raised ValueError: as asked")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("pipeline", ["drop-gemms", "flatten-loops"])
def test_an_old_dsl_is_told(pipeline: str, tmp_path: Path) -> None:
    """4.5 has no trace-finalize hooks. The error comes when the program imports the DSL."""
    for package in ("cutlass", "cutlass/cute"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("__version__ = '4.5.0'\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import cutlass.cute; print(1)"
    environment = program_environment(os.environ, pipeline, [str(PASSES)], "missed")
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stdout == ""
    message = "nvidia-cutlass-dsl 4.5.0 is not supported (tilepass needs nvidia-cutlass-dsl >= 4.6)"
    assert result.stderr.rstrip().endswith(message)


def test_with_tvm_ffi() -> None:
    from cute_support import compile_kernel, mmas_of

    from tilepass.activate import enabled

    with enabled("drop-gemms", load=[PASSES], remarks="none"):
        inside = compile_kernel("--enable-tvm-ffi")
    assert "TVMFFI" in type(inside).__name__
    outside = compile_kernel("--enable-tvm-ffi")
    assert (mmas_of(inside), mmas_of(outside)) == (4, 8)


def test_enabled_before_the_dsl_is_imported() -> None:
    """And the bindings alone, as tilepass imports them, are not the DSL."""
    program = (
        "import sys\n"
        "from tilepass.activate import enabled\n"
        f"with enabled('drop-gemms', load=[{str(PASSES)!r}], remarks='none') as session:\n"
        "    import tilepass.ir.engine\n"
        "    print('cutlass.cute' in sys.modules)\n"
        "    import cute_kernels\n"
        "    cute_kernels.compile_only()\n"
        "cute_kernels.compile_only()\n"
        "print(len(session.remarks))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PASSES.parent), "CUTE_DSL_ARCH": "sm_90a"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("False\n1\n", "")
