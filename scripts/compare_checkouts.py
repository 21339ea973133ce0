"""Compare what two checkouts of tilepass give: IR, PTX, remarks and errors, byte for byte.

usage: python scripts/compare_checkouts.py BEFORE AFTER [--only tests|kernels] [--filter TEXT]

`tests`: every `tilepass` and `tilepass-opt` command in the RUN lines of BEFORE's lit_tests, with
all remarks where the test verifies diagnostics. `kernels`: `dump-ir` of every arm of results/*.json
whose kernel is in kernels/, and of every kernel there through every pass of its compiler. Both
checkouts run in the environment of this script's Python. Exit status 1 for a difference; the
records stay in the folder that is printed.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
# Of a command that runs others, or asks the machine.
_SKIPPED_TESTS = ("gpu", "cli/doctor", "doctor")
_SHOWN_LINES = 12

# Runs the program of its name and records what it gives. LINE names the record.
_RECORDER = """#!/bin/bash
name=$(basename "$0"); to=$RECORD; line=$LINE
unset RECORD LINE
given=$(printf '%s ' "$@" | md5sum | cut -c1-8)
record="$to/$line-$name-$given"
cat > "$record.in" < <([ -t 0 ] || timeout 600 cat)
printf '%s\\n' "$*" > "$record.txt"
{program} "$@" < "$record.in" > "$record.out" 2> "$record.err"; status=$?
{ echo "status $status"; cat "$record.out"; echo "stderr:"; cat "$record.err"; } >> "$record.txt"
if [[ " $* " == *" --verify-diagnostics "* ]]; then
  rest=(); for each in "$@"; do [ "$each" = --verify-diagnostics ] || rest+=("$each"); done
  all=(-Rpass=. -Rpass-missed=. -Rpass-analysis=.)
  {program} "${rest[@]}" "${all[@]}" < "$record.in" >> "$record.txt" 2>&1
fi
cat "$record.out"; cat "$record.err" >&2
rm -f "$record.in" "$record.out" "$record.err"
exit $status
"""


@dataclass(frozen=True)
class Side:
    """One checkout, and where what it gives is kept."""

    checkout: Path
    records: Path

    def environment(self) -> dict[str, str]:
        """The variables of its commands, its own caches included."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRITON_", "MLIR_", "TILEPASS", "FILECHECK_OPTS", "PYTHON"))
        }
        caches = self.records.parent / f"{self.records.name}-caches"
        return kept | {
            "PYTHONPATH": str(self.checkout / "src"),
            "TRITON_CACHE_DIR": str(caches / "triton"),
            "TILEPASS_CACHE_DIR": str(caches / "tilepass"),
            "XDG_CACHE_HOME": str(caches),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", choices=("tests", "kernels"))
    parser.add_argument("--filter", default="", metavar="TEXT", help="names that hold it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tilepass-compare-"))
    before, after = options.before.resolve(), options.after.resolve()
    sides = [Side(before, folder / "before"), Side(after, folder / "after")]
    for side in sides:
        if not (side.checkout / "src" / "tilepass").is_dir():
            parser.error(f"{side.checkout} is not a checkout of tilepass")
        side.records.mkdir()
        if options.only != "kernels":
            record_tests(side, before, options.filter, options.jobs)
        if options.only != "tests":
            record_kernels(side, before, options.filter, options.jobs)
    different = compare(sides[0].records, sides[1].records)
    count = sum(path.is_file() for path in sides[0].records.rglob("*"))
    print(f"{count} records, {different} of them differ: {folder}")
    return 1 if different or not count else 0


def record_tests(side: Side, before: Path, text: str, jobs: int) -> None:
    """Run the commands of all lit tests."""
    programs = side.records.parent / f"{side.records.name}-programs"
    environment = side.environment() | {
        "PATH": os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
    }
    servers = _start_warm(programs / "warm", environment)
    _write_recorders(programs, programs / "warm" if servers else PROGRAMS)
    # The programs found are the recorders; what those find is another matter.
    environment["PATH"] = os.pathsep.join([str(programs), environment["PATH"]])
    tests = [path for path in _lit_tests(before) if text in str(path.relative_to(before))]
    with ThreadPoolExecutor(jobs) as pool:
        done = [
            pool.submit(_record_test, path, side, before, programs, environment) for path in tests
        ]
    _raise_failures(done)
    for server in servers:
        server.communicate()


def _raise_failures(done: Sequence[Future[None]]) -> None:
    for each in done:
        each.result()


def _start_warm(folder: Path, environment: dict[str, str]) -> Sequence[subprocess.Popen[bytes]]:
    """The processes that run commands without a start of Python, if there is such a thing."""
    sys.path.append(str(SOURCE / "lit_tests"))
    try:
        warm: Any = importlib.import_module("warm")
    except ImportError:
        return ()
    environment["PATH"] = os.pathsep.join([str(folder), environment["PATH"]])
    warm.SERVERS.clear()
    warm.start(folder, environment, PROGRAMS)
    return tuple(warm.SERVERS)


def _write_recorders(folder: Path, programs: Path) -> None:
    for name in ("tilepass", "tilepass-opt"):
        path = folder / name
        path.write_text(_RECORDER.replace("{program}", str(programs / name)))
        path.chmod(0o755)
    (folder / "not").write_text('#!/bin/bash\n"$@" && exit 1 || exit 0\n')
    (folder / "not").chmod(0o755)


def _lit_tests(checkout: Path) -> Iterator[Path]:
    root = checkout / "lit_tests"
    for path in sorted(root.rglob("*")):
        place = str(path.relative_to(root))
        skipped = "Inputs" in place or place.startswith(_SKIPPED_TESTS)
        if path.suffix in {".mlir", ".ttir", ".ttgir", ".py", ".test"} and not skipped:
            yield path


def _record_test(
    path: Path, side: Side, before: Path, programs: Path, environment: dict[str, str]
) -> None:
    name = str(path.relative_to(before / "lit_tests")).replace("/", "-")
    record = side.records / "tests" / name
    record.mkdir(parents=True)
    # One folder for both sides, since messages and the names of records hold it.
    scratch = side.records.parent / "scratch" / name
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    first = programs / "warm" / "python"
    python = str(first if first.exists() else sys.executable)
    words = {
        "%filecheck": "cat > /dev/null ||",
        "%python": python,
        "%test_passes": str(before / "lit_tests" / "Inputs" / "test_passes.py"),
        "%t": str(scratch / "t"),
        "%S": str(path.parent),
        "%s": str(path),
    }
    for number, line in enumerate(_run_lines(path)):
        for word, value in words.items():
            line = re.sub(rf"{word}(?![a-zA-Z_])", lambda _, value=value: value, line)
        told = {"RECORD": str(record), "LINE": f"{number:02}"}
        subprocess.run(
            ["bash", "-c", line],
            cwd=before,
            env=environment | told,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )


def _run_lines(path: Path) -> Iterator[str]:
    line = ""
    for found in re.findall(r"RUN: *(.*)", path.read_text()):
        line += found.rstrip()
        if line.endswith("\\"):
            line = line[:-1]
            continue
        yield line
        line = ""


def record_kernels(side: Side, before: Path, text: str, jobs: int) -> None:
    """Dump every kernel that a result names or that a pass may change."""
    cases = [case for case in _kernel_cases(before) if text in " ".join(case)]
    with ThreadPoolExecutor(jobs) as pool:
        done = [pool.submit(_record_kernel, case, side) for case in cases]
    _raise_failures(done)


def _kernel_cases(before: Path) -> list[tuple[str, ...]]:
    """Kernel, pipeline and the fields that differ from the kernel's own; each once."""
    cases: dict[tuple[str, ...], None] = dict.fromkeys(_result_cases(before))
    for path in sorted((before / "kernels").glob("*_triton.py")):
        kernel = path.stem.removesuffix("_triton")
        for pipeline in ("", *_pipelines(before, "triton")):
            cases[kernel.replace("_", "-"), pipeline] = None
    for path in sorted((before / "kernels").glob("[a-z]*_cute.py")):
        for pipeline in ("", *_pipelines(before, "cute")):
            cases[path.stem.replace("_", "-"), pipeline] = None
    return list(cases)


def _pipelines(before: Path, compiler: str) -> Iterator[str]:
    for path in sorted((before / "passes" / compiler).iterdir()):
        name = path.stem.replace("_", "-")
        # One for tests, and one for IR that only Triton's own warp specialization makes.
        if not name.startswith((".", "-", "test-")) and (path.is_dir() or path.suffix == ".py"):
            yield name
    if compiler == "triton":
        yield "flatten-loops{mode=on},acc-multi-buffer{mode=disallow},fix-dot-wait"


def _result_cases(before: Path) -> Iterator[tuple[str, ...]]:
    names = {path.stem for path in (before / "kernels").glob("[a-z]*.py")}
    for path in sorted((before / "results").glob("*.json")):
        report = json.loads(path.read_text())
        kernel = report.get("kernel", "").replace("-", "_")
        if not names & {kernel, f"{kernel}_triton"}:
            continue
        for arm in report["arms"]:
            for point in report["points"] if not arm.get("library") else ():
                fields = {**point["overrides"], **arm["overrides"]}
                given = (f"{name}={value}" for name, value in sorted(fields.items()))
                yield report["kernel"], arm["pipeline"], *given


def _record_kernel(case: tuple[str, ...], side: Side) -> None:
    kernel, pipeline, *fields = case
    name = re.sub(r"[^\w=.-]+", "_", " ".join(case))
    record = side.records / "kernels" / name
    record.parent.mkdir(parents=True, exist_ok=True)
    command = [str(PROGRAMS / "tilepass"), "dump-ir", kernel, "--target", "cuda:90", "--no-html"]
    command += [word for field in fields for word in ("--config", field)]
    command += ["-p", pipeline] if pipeline else []
    command += ["--only-changed", "-o", str(record)]
    ran = subprocess.run(
        command, env=side.environment(), capture_output=True, text=True, check=False
    )
    record.mkdir(exist_ok=True)
    said = f"status {ran.returncode}\n{ran.stdout}\nstderr:\n{ran.stderr}"
    (record / "said.txt").write_text(said)
    for path in record.rglob("*"):
        if path.suffix in {".cubin", ".diff"}:
            path.unlink()
    for number, path in enumerate(sorted(path for path in record.iterdir() if path.is_dir())):
        path.rename(record / f"{number:02}-{path.name.rpartition('-')[0]}")


def compare(before: Path, after: Path) -> int:
    """Print how the records differ; the number that do."""
    names = {path.relative_to(side) for side in (before, after) for path in _files(side)}
    different = 0
    for name in sorted(names):
        old, new = _normal(before / name, before), _normal(after / name, after)
        if old == new:
            continue
        different += 1
        print(f"--- {name}")
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
        told = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        print("\n".join(line[:240] for line in told[:_SHOWN_LINES]))
        if len(told) > _SHOWN_LINES:
            print(f"... {len(told) - _SHOWN_LINES} more lines")
    return different


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _normal(path: Path, records: Path) -> str:
    """A record without what differs from run to run: folders, hashes of sources, times."""
    if not path.exists():
        return "(no such record)"
    text = path.read_text(errors="replace")
    for folder in (records.parent / f"{records.name}-", records):
        text = text.replace(str(folder), "FOLDER")
    # Lines of sources are compared, not where the sources lie: PTX says it once more in numbers.
    text = re.sub(r"(?:/[\w.+-]+)+/(?=src/tilepass)", "CHECKOUT/", text)
    text = text.partition("\t.section\t.debug_")[0] if path.suffix == ".ptx" else text
    text = re.sub(r"\b\d+(\.\d+)? (m?s)\b", r"N \2", text)
    text = re.sub(r"(?<=[\"/ -])[0-9a-f]{8}(?=[\"/ \n])|\b[0-9a-f]{40,64}\b", "HASH", text)
    text = re.sub(r"\b0x[0-9a-f]{9,}\b", "ADDRESS", text)
    return re.sub(r'"(seconds|milliseconds|\w+_(s|ms|seconds))": [\d.e-]+', r'"\1": N', text)


if __name__ == "__main__":
    sys.exit(main())
