"""A program for a GPU on a machine without one: what it launches is compiled, and it ends well."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilepass.binary.elf import registers
from tilepass.binary.figures import kernel_figures
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.dump.ir_text import without_locations
from tilepass.subjects.program import CompileOnly, compile_only_asked, program_environment
from tilepass.without_gpu.devices import device_of

PROGRAM = Path(__file__).with_name("without_gpu_program.py")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def tilepass(cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilepass", *words]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(cache)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def run(cache: Path, *words: str, check: str = "allclose") -> subprocess.CompletedProcess[str]:
    program = ("--", sys.executable, str(PROGRAM), "--check", check)
    return tilepass(cache, "run", *words, *program)


def test_kernels_are_compiled_as_they_are_launched(cache: Path) -> None:
    """With the first configuration of each tuning; a check of results becomes a note."""
    result = run(cache, "--compile-only")
    assert result.returncode == 0, result.stderr
    printed = re.fullmatch(r"programs of an SM: (\d+)\nall launched\n", result.stdout)
    assert printed, result.stdout
    assert 4 <= int(printed[1]) <= 64
    notes = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 3
    for note, reason in zip(
        notes, ("Tensor-likes are not close!", "not allclose", "the results differ"), strict=True
    ):
        assert re.match(rf"note: {PROGRAM}:\d+: the program's own check cannot hold", note)
        assert note.endswith(reason)
    last = result.stderr.splitlines()[-1]
    # `tuned` twice: 1024 is a multiple of the block, 98432 is not.
    assert re.fullmatch(
        r"compiled 5 kernels for cuda:90 \(device_made, host_made, occupied, tuned\); none was run:"
        r" \d+ launches did nothing",
        last,
    ), result.stderr


def test_all_configurations_and_an_error_of_the_program(cache: Path) -> None:
    result = run(cache, "--all-configs", check="bug")
    assert result.returncode == 1
    assert "ValueError: no such option" in result.stderr
    assert "compiled 9 kernels for cuda:90" in result.stderr.splitlines()[-1], result.stderr


def test_a_pipeline_is_in_force(cache: Path) -> None:
    """Its kernels have their own keys."""
    before = set(cache.glob("*/*.cubin"))
    program = ("--", sys.executable, str(PROGRAM), "--few")
    result = tilepass(cache, "run", "--target", "cuda:90", "-p", "test-round-trip", *program)
    assert result.returncode == 0, result.stderr
    (made,) = set(cache.glob("*/*.cubin")) - before
    assert made.name == "host_made.cubin"


def test_a_pipeline_or_compile_only(cache: Path) -> None:
    result = tilepass(cache, "run", "--", "true")
    assert result.returncode == 2
    assert "required: -p/--pipeline" in result.stderr


def test_what_is_asked_for() -> None:
    assert compile_only_asked(None, asked=False, all_configurations=False) is None
    stock = compile_only_asked(None, asked=True, all_configurations=False)
    assert stock == CompileOnly(Target("cuda", 90))
    with pytest.raises(TilepassError, match="--target 'sm_90': expected cuda:NUMBER"):
        compile_only_asked("sm_90", asked=False, all_configurations=False)
    with pytest.raises(TilepassError, match="no GPU of hip:gfx803 is known to stand in for"):
        compile_only_asked("hip:gfx803", asked=False, all_configurations=False)


def test_a_program_inside_another_has_its_gpu_back() -> None:
    outer = program_environment({}, "a", [], "", compile_only=CompileOnly(Target("cuda", 80), True))
    assert (outer["TILEPASS_COMPILE_ONLY"], outer["CUTE_DSL_ARCH"]) == ("cuda:80 all", "sm_80")
    assert program_environment(outer, "a", [], "")["TILEPASS_COMPILE_ONLY"] == ""


def test_the_nearest_device_below() -> None:
    assert device_of(Target("cuda", 103)) == device_of(Target("cuda", 100))
    assert device_of(Target("cuda", 100)).processors == 148


def test_registers_of_a_binary(cache: Path) -> None:
    """As many as ptxas says that the kernel uses."""
    for binary in sorted(cache.glob("*/*.cubin"))[:2]:
        assert registers(binary.read_bytes()) == kernel_figures(binary).registers > 0


def test_dump_of_a_program(cache: Path, tmp_path: Path) -> None:
    program = ("--", sys.executable, str(PROGRAM), "--few")
    result = tilepass(
        cache, "dump-ir", "--kernel", "host_made", "--no-html", "-o", str(tmp_path), *program
    )
    assert result.returncode == 0, result.stderr
    assert "no GPU here: compiling for cuda:90 (see --target)" in result.stderr
    (folder,) = (each for each in tmp_path.iterdir() if each.is_dir())
    assert folder.name.startswith("host_made-cuda90")
    assert "host_made (cuda:90): " in result.stdout
    assert any("host_made" in each.read_text() for each in folder.glob("*.ptx"))


def test_decisions_about_a_program(cache: Path) -> None:
    """By its own command, and in this process; what the program prints is not the account."""
    passes = str(Path(__file__).parents[1] / "lit_tests" / "Inputs" / "test_passes.py")
    options = ("explain", "--load", passes, "-p", "test-decides", "--target", "cuda:90", "--json")
    of_command = tilepass(cache, *options, "--", sys.executable, str(PROGRAM), "--few")
    of_file = tilepass(cache, *options, str(PROGRAM), "--", "--few")
    accounts = [json.loads(each.stdout) for each in (of_command, of_file)]
    assert accounts[0] == accounts[1]
    assert accounts[0]["decisions"]
    assert of_file.stderr.splitlines()[-1].startswith("compiled 1 kernel for cuda:90")


SIGNATURE = (
    f"{PROGRAM}:host_made",
    "--signature",
    "a=tensordesc<fp16[64,64]>,o=tensordesc<fp16[64,64]>,K=i32:16",
    *("--constexpr", "M=64", "--constexpr", "N=64", "--num-warps", "8"),
)


def test_check_of_a_program(cache: Path) -> None:
    """Of each kernel the source and the end of ttgir, and with a pipeline one against the other."""
    program = ("--", sys.executable, str(PROGRAM), "--few")
    result = tilepass(cache, "check", "--seeds", "1", "-p", "test-round-trip", *program)
    assert result.returncode == 0, result.stderr
    name = r"host_made-cuda90-\w+"
    lines = [
        rf"{name}\.source: host_made: nothing undefined .*",
        rf"{name}\.ttgir: host_made: nothing undefined .*",
        rf"{name}\.ttgir: host_made: protocol: \d+ schedules .*",
        rf"{name}\.ttgir: host_made: the same as {name}\.source .*",
        rf"{name}\.ttgir: host_made: not compared: arguments that overlap",
    ]
    assert re.fullmatch("\n".join(lines), result.stdout.strip()), result.stdout


def test_binaries_of_a_program(cache: Path) -> None:
    program = ("--", sys.executable, str(PROGRAM), "--few")
    result = tilepass(cache, "ab", "--b", "test-round-trip", "--arch", "80", *program)
    assert result.returncode == 0, result.stderr
    assert "kernel=host_made: IDENTICAL: all arms are the same binary" in result.stdout
    assert result.stderr.count("compiled 1 kernel for cuda:80") == 2


def test_a_signature_in_every_command(cache: Path, tmp_path: Path) -> None:
    """The same kernel as the program launches, by what a launch would find out."""
    dumped = tilepass(cache, "dump-ir", *SIGNATURE, "--no-html", "-o", str(tmp_path))
    assert dumped.returncode == 0, dumped.stderr
    launched = sorted(cache.glob("*/host_made.ttgir"))
    assert launched, "no other test has launched it"
    (folder,) = (each for each in tmp_path.iterdir() if each.is_dir())
    (ttgir,) = (each for each in folder.glob("*-ttgir.ttgir"))

    texts = [without_locations(each.read_text()) for each in launched]
    assert ttgir.read_text() in texts
    explained = tilepass(cache, "explain", "-p", "flatten-loops", *SIGNATURE)
    assert explained.returncode == 0, explained.stderr
    assert "no decision was taken" in explained.stdout
    checked = tilepass(cache, "check", "--seeds", "1", *SIGNATURE)
    assert checked.returncode == 0, checked.stderr
    assert "protocol: " in checked.stdout
    compared = tilepass(cache, "ab", *SIGNATURE, "--config-b", "num_warps=4")
    assert compared.returncode == 0, compared.stderr
    assert len(re.findall(r"kernel=host_made +[AB] +host_made", compared.stdout)) == 2


def test_what_does_not_fit_the_function(cache: Path) -> None:
    """In one process: each begins with importing torch and Triton."""
    cases: dict[str, tuple[str, dict[str, str]]] = {
        "has 3 parameters that are not constants, the signature 1 types: a, o, K": ("i32", {}),
        "has no parameter 'x' (parameters: a, o, K)": ("a=i32,x=i32", {}),
        "needs a type or a constant for 'K': K": ("a=i32,o=i32", {}),
        "'no' of .*'s 'a' is not a type such as i32": ("no,i32,i32", {}),
        "has no parameter 'P' (parameters: a, o, K, M, N)": ("i32,i32,i32", {"P": "1"}),
    }
    code = (
        "import json, sys\n"
        "from tilepass.core.errors import TilepassError\n"
        "from tilepass.core.pass_base import Target\n"
        "from tilepass.subjects.kernel import KernelSpec\n"
        "for signature, constants in json.load(sys.stdin):\n"
        "    constants = {'M': '64', 'N': '64', **constants}\n"
        "    try:\n"
        f"        KernelSpec({SIGNATURE[0]!r}, signature, constants).compile(Target('cuda', 90))\n"
        "    except TilepassError as error:\n"
        "        print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(list(cases.values())),
        env={**os.environ, "TRITON_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = result.stdout.splitlines()
    assert len(lines) == len(cases), result
    for line, message in zip(lines, cases, strict=True):
        assert message in line or re.search(message, line), line


def test_a_program_that_fails_is_explained_all_the_same(cache: Path) -> None:
    program = ("--", sys.executable, str(PROGRAM), "--few", "bug")
    result = tilepass(cache, "explain", "-p", "flatten-loops", *program)
    assert result.returncode == 1
    assert "no decision was taken" in result.stdout
    assert re.search(r"^error: .* exited with 1; what it compiled:$", result.stderr, re.MULTILINE)
    compared = tilepass(cache, "ab", *program)
    assert compared.returncode == 1
    assert "error: arm A: a program that fails may not have compiled all" in compared.stderr
