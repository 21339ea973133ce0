"""What commands load, and how they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import tilepass
from tilepass.cli.guard import BROKEN_PIPE, INTERRUPTED, run_guarded
from tilepass.cli.main import COMMANDS
from tilepass.core.errors import ParseError, TilepassError

_HEAVY = ("triton", "triton._C", "cutlass", "cutlass._mlir", "torch", "numpy")
_MODULE = "tt.func @f(%x: i32) -> i32 {\n  tt.return %x : i32\n}\n"


def _run(*arguments: str, code: str = "", text: str | None = None) -> str:
    """Run `tilepass` in a fresh interpreter, then `code`."""
    program = (
        "import sys\nfrom tilepass.cli.main import main\n"
        f"try: main({list(arguments)!r})\nexcept SystemExit as end: assert not end.code, end.code\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program + code],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _loaded(*arguments: str, text: str | None = None) -> set[str]:
    code = f"print(*[name for name in {_HEAVY!r} if name in sys.modules])"
    return set(_run(*arguments, code=code, text=text).splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [("--help",), *((name, "--help") for name in COMMANDS)])
def test_help_loads_no_compiler(arguments: tuple[str, ...]) -> None:
    assert _loaded(*arguments) == set()


def test_triton_passes_load_neither_the_engine_nor_all_of_triton() -> None:
    assert _loaded("opt", "-", "-p", "canonicalize,cse", text=_MODULE) == {"triton._C"}


def test_own_passes_do_not_load_the_dsl() -> None:
    loaded = _loaded("opt", "-", "-p", "flatten-loops", text=_MODULE)
    assert {"triton._C", "cutlass._mlir"} <= loaded
    assert not loaded & {"triton", "cutlass", "torch"}


def _raise(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (TilepassError("no way"), 1, "error: no way\n"),
        (ParseError("f.mlir:1:2: error: bad"), 1, "f.mlir:1:2: error: bad\n"),
        (TilepassError("'f.mlir:1:2: error: bad'"), 1, "error: 'f.mlir:1:2: error: bad'\n"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted\n"),
    ],
)
def test_expected_ends(
    error: BaseException, status: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(arguments: Sequence[str]) -> int:
        return _raise(error)

    assert run_guarded(command, []) == status
    assert capsys.readouterr().err == shown


def test_full_disk() -> None:
    command = [sys.executable, "-m", "tilepass.cli.main", "opt", "-"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, input=_MODULE, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "closed", "status", "shown"),
    [
        (("-",), "0<&-", 1, "error: <stdin>: the file is empty\n"),
        (("-",), "1>&-", 1, "error: standard output: Bad file descriptor\n"),
        (("--help",), "1>&-", 1, "error: standard output: Bad file descriptor\n"),
        (("-",), "2>&-", 0, ""),
        (("no-such-file",), "2>&-", 1, ""),
    ],
)
def test_closed_standard_streams(
    arguments: tuple[str, ...], closed: str, status: int, shown: str
) -> None:
    command = f'exec "$0" -m tilepass opt "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        input=_MODULE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, shown)
    assert bool(done.stdout) == (status == 0)


@pytest.mark.parametrize("module", ["tilepass", "tilepass.cli.main", "tilepass.cli.opt"])
def test_commands_run_as_modules(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown == f"tilepass {tilepass.__version__}\n"


def test_bugs_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run_guarded(lambda _: 1 // 0, [])


def test_reader_that_goes_away(tmp_path: Path) -> None:
    # More than fits into a pipe.
    functions = "".join(f"tt.func @f{i}() {{ tt.return }}\n" for i in range(3000))
    file = tmp_path / "many.mlir"
    file.write_text(functions)
    command = [sys.executable, "-m", "tilepass.cli.main", "opt", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == BROKEN_PIPE
