"""Create the Python environments of this source tree and keep them up to date.

Usage: python3 cmake/environment.py main|triton39

* `main` makes `.venv`: the project in editable form with everything that `pyproject.toml` names.
  Where the interpreter that runs this script has torch and triton in the supported ranges, these
  two and whatever else it has are used instead of being installed again.
* `triton39` makes `.venv-triton39`: Triton 3.9.0 and the project; all else is taken from `.venv`.

A finished environment holds a fingerprint of what it was made from; while that stays the same,
nothing is done. The script uses no package, because it runs before any is installed. pip's own
settings (`PIP_INDEX_URL`, `PIP_NO_INDEX`, `PIP_FIND_LINKS`, ...) apply.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1]
CONSTRAINTS = SOURCE / "cmake" / "constraints.txt"
MAIN = SOURCE / ".venv"
TRITON39 = SOURCE / ".venv-triton39"
FINGERPRINT = "tilepass-fingerprint"

BUILD_TOOLS = ("setuptools>=77", "wheel")
# Torch's GPU builds, the only ones on PyPI, pin their Triton: this is the newest that goes with the
# pinned one. The CPU builds pin none and are a tenth of the size; some machines have one in their
# own package index, else PyTorch's index is asked.
TORCH_GPU = ("torch==2.11.0",)
TORCH_CPU = ("torch==2.13.0+cpu",)
PYTORCH_CPU_INDEX = ("--extra-index-url", "https://download.pytorch.org/whl/cpu", "--retries", "1")


class SetupError(Exception):
    """An environment cannot be made; the message says why."""


def say(message: str) -> None:
    """Print a progress line at once, also when the output is a file."""
    print(message, flush=True)


def release(version: str) -> tuple[int, ...]:
    """The numeric part of a version: `2.13.0+cpu` gives `(2, 13, 0)`."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def in_range(version: str, requirement: str) -> bool:
    """Whether a version meets the bounds of a requirement such as `triton>=3.6,<3.10`."""
    bounds: list[tuple[str, str]] = re.findall(r"(>=|<)\s*([\d.]+)", requirement)
    found = release(version)
    return all((found >= release(b)) if op == ">=" else (found < release(b)) for op, b in bounds)


def installed(distribution: str) -> str | None:
    """The version of a distribution that this interpreter can import, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def pyproject() -> dict[str, Any]:
    """The contents of `pyproject.toml`."""
    return tomllib.loads((SOURCE / "pyproject.toml").read_text())


def can_reuse_this_interpreter() -> bool:
    """Whether this interpreter brings torch and triton, both in the ranges of `pyproject.toml`.

    One of the two alone is of no use: torch's GPU builds accept a single Triton version.
    """
    project = pyproject()["project"]
    requirements: list[str] = project["dependencies"] + project["optional-dependencies"]["torch"]
    for requirement in requirements:
        name = re.split(r"[<>=]", requirement)[0]
        if name not in ("torch", "triton"):
            continue
        version = installed(name)
        if version is None or not in_range(version, requirement):
            return False
    return True


def fingerprint(*facts: str) -> str:
    """A hash of everything that an environment is made from."""
    tables = pyproject()
    installation = [tables["build-system"], tables["project"], tables["tool"]["setuptools"]]
    files = (SOURCE / "setup.py", CONSTRAINTS, Path(__file__))
    parts = [str(SOURCE), sys.executable, sys.version, *facts, repr(installation)]
    parts += [path.read_text() for path in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_current(venv: Path, wanted: str) -> bool:
    """Whether an environment was finished with this fingerprint and its Python still starts."""
    stamp = venv / FINGERPRINT
    if not stamp.exists() or stamp.read_text() != wanted:
        return False
    return subprocess.run([venv / "bin" / "python", "-c", ""], check=False).returncode == 0


def run(command: Sequence[str | Path]) -> int:
    """Run a command with this process's output, and return its exit code."""
    return subprocess.run([str(word) for word in command], check=False, cwd=SOURCE).returncode


def create_venv(venv: Path, *flags: str) -> None:
    """Make an empty environment in place of whatever is there."""
    shutil.rmtree(venv, ignore_errors=True)
    if run([sys.executable, "-m", "venv", *flags, venv]) != 0:
        raise SetupError(
            f"{sys.executable} -m venv failed (Debian, Ubuntu: apt install python3-venv)"
        )


def site_packages(venv: Path) -> Path:
    """The folder into which an environment installs."""
    return next((venv / "lib").glob("python3.*")) / "site-packages"


def link_site_packages(venv: Path, folders: Sequence[str | Path]) -> None:
    """Let an environment import what other environments hold; what it installs itself comes first.

    The other folders' `.pth` files are run too, which a `sys.path` entry alone would not do.
    `--system-site-packages` does not serve: in an environment made from another one it means the
    interpreter's own packages, not that other environment's.
    """
    lines = [f"import site; site.addsitedir({str(folder)!r})\n" for folder in folders]
    (site_packages(venv) / "_shared.pth").write_text("".join(lines))


def pip_install(venv: Path, *arguments: str | Path, constraints: Path | None = None) -> None:
    """Install into an environment, silently.

    Raises SetupError with pip's messages.
    """
    options = ["-q", "--no-input", "--no-compile", "--disable-pip-version-check"]
    options += ["--root-user-action", "ignore", "--progress-bar", "off"]
    if constraints is not None:
        options += ["-c", str(constraints)]
    command = [venv / "bin" / "python", "-m", "pip", "install", *options, *arguments]
    result = subprocess.run(
        [str(word) for word in command],
        check=False,
        cwd=SOURCE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        wanted = " ".join(str(argument) for argument in arguments)
        raise SetupError(f"pip could not install {wanted}:\n{result.stdout}")


def has_gpu() -> bool:
    """Whether an NVIDIA driver is loaded on this machine."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()


def install_torch(venv: Path, constraints: Path) -> None:
    """Install the pinned torch: a GPU build where there is a GPU, else a CPU build.

    Raises SetupError with what pip said of each build tried.
    """
    cpu: list[tuple[str, ...]] = [TORCH_CPU, (*TORCH_CPU, *PYTORCH_CPU_INDEX)]
    failures: list[str] = []
    for choice in [TORCH_GPU] if has_gpu() else [*cpu, TORCH_GPU]:
        say(f"   {' '.join(choice)}")
        try:
            return pip_install(venv, *choice, *BUILD_TOOLS, constraints=constraints)
        except SetupError as failure:
            failures.append(str(failure))
    raise SetupError("\n".join(failures))


def pins_to_apply(reuse: bool) -> str:
    """The lines of the constraints file; when reusing, those for what is not there yet."""
    lines = [line for line in CONSTRAINTS.read_text().splitlines() if "==" in line]
    if reuse:
        lines = [line for line in lines if installed(line.split("==")[0]) is None]
    return "\n".join(lines) + "\n"


def make_main(reuse: bool) -> None:
    """Make `.venv` anew."""
    create_venv(MAIN)
    if reuse:
        link_site_packages(MAIN, [*site.getsitepackages(), site.getusersitepackages()])
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text(pins_to_apply(reuse))
        if reuse:
            pip_install(MAIN, *BUILD_TOOLS)
        else:
            install_torch(MAIN, constraints)
        say("   the project and its other dependencies")
        project = ("--no-build-isolation", "-e", f"{SOURCE}[dev]")
        pip_install(MAIN, *project, constraints=constraints)


def make_triton39() -> None:
    """Make `.venv-triton39` anew, on top of `.venv`."""
    create_venv(TRITON39, "--without-pip")
    link_site_packages(TRITON39, [site_packages(MAIN)])
    pip_install(TRITON39, "--no-deps", "triton==3.9.0")
    pip_install(TRITON39, "--no-deps", "--no-build-isolation", "-e", SOURCE)


def ensure(name: str) -> None:
    """Bring one environment up to date.

    Raises:
        SetupError: it could not be made.
    """
    reuse = can_reuse_this_interpreter()
    facts = [f"{d} {installed(d)}" for d in ("torch", "triton")] if reuse else []
    if name == "main":
        venv, wanted = MAIN, fingerprint(*facts)
    else:
        venv, wanted = TRITON39, fingerprint("triton39", (MAIN / FINGERPRINT).read_text())
    if is_current(venv, wanted):
        return
    origin = f"with this machine's {', '.join(facts)}" if facts else "a few minutes the first time"
    verb = "replacing" if venv.exists() else "making"
    say(f"-- {verb} {venv.relative_to(SOURCE)} ({origin if name == 'main' else 'Triton 3.9.0'})")
    start = time.monotonic()
    if name == "main":
        make_main(reuse)
    else:
        make_triton39()
    (venv / FINGERPRINT).write_text(wanted)
    say(f"-- made {venv.relative_to(SOURCE)} in {time.monotonic() - start:.0f} s")


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Create or update the Python environments.")
    parser.add_argument("name", choices=["main", "triton39"])
    name: str = parser.parse_args().name
    # The activating variables of an enclosing environment or of tilepass itself must not reach pip.
    for variable in ("PYTHONPATH", "PYTHONHOME", "TILEPASS"):
        os.environ.pop(variable, None)
    lock_file = SOURCE / "out" / "environment.lock"
    lock_file.parent.mkdir(exist_ok=True)
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            ensure("main")
            if name == "triton39":
                ensure("triton39")
        except SetupError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
