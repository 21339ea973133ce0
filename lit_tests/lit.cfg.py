"""lit configuration: `ENVIRONMENT/bin/lit lit_tests` tests that environment's tilepass and Triton.

Substitutions: `%python`, `%filecheck`, and `%test_passes`, a file of passes for `--load`.
`tilepass` and `tilepass-opt` come from the environment under test.
Features: `triton-3.6` (the installed minor version), `triton-3.7+` (that version or a later one),
`ptxas`, `nvdisasm`, `torch`, `gpu`.
Parameters: `--param warm=1` runs commands in forks of one process (see warm.py), as `check` does;
`--param gpu=required` makes a missing GPU an error, for machines that must have one;
`--param source=FOLDER` tests the tilepass in that folder.
"""

import os
import sys
from importlib import metadata, util
from pathlib import Path

import lit.formats

# lit executes this file with these two names defined.
config = globals()["config"]
lit_config = globals()["lit_config"]

SUPPORTED_TRITON_MINORS = range(6, 10)
SCRIPTS = Path(sys.executable).parent
HERE = Path(__file__).parent


def triton_version() -> tuple[int, int]:
    """Major and minor version of the installed Triton, which is not imported."""
    try:
        parts = metadata.version("triton").split(".")
    except metadata.PackageNotFoundError:
        lit_config.fatal(f"{sys.executable} has no triton")
    return int(parts[0]), int(parts[1])


def has_gpu() -> bool:
    """Whether NVML sees a GPU; its library is absent on machines without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return False
    return pynvml.nvmlDeviceGetCount() > 0


def features() -> set[str]:
    """What RUN lines may require of the environment under test."""
    major, minor = triton_version()
    found = {f"triton-{major}.{minor}"}
    found |= {
        f"triton-3.{other}+" for other in SUPPORTED_TRITON_MINORS if (3, other) <= (major, minor)
    }
    found |= {name for name in ("torch",) if util.find_spec(name)}
    tools = Path(util.find_spec("triton").origin).parent / "backends" / "nvidia" / "bin"
    found |= {name for name in ("ptxas", "nvdisasm") if (tools / name).is_file()}
    if has_gpu():
        found.add("gpu")
    elif lit_config.params.get("gpu") == "required":
        lit_config.fatal("--param gpu=required, but no GPU was found")
    return found


for script in ("tilepass", "tilepass-opt"):
    if not (SCRIPTS / script).is_file():
        lit_config.fatal(f"{SCRIPTS / script} is missing: install tilepass for {sys.executable}")

config.name = "tilepass"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ttir", ".ttgir", ".py", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "lit.local.cfg", "warm.py"]
config.test_source_root = str(HERE)
# One folder per Triton version and tested package: several suites may run at the same time.
root = Path(lit_config.params.get("source", HERE)).parent / "build" / "lit"
config.test_exec_root = str(root / "-".join(map(str, triton_version())))
config.available_features |= features()

# A user's settings must not reach the tests, nor the tests a user's caches.
for name in list(config.environment):
    if name.startswith(("TRITON_", "MLIR_", "TILEPASS", "FILECHECK_OPTS")):
        del config.environment[name]
config.environment["PATH"] = os.pathsep.join([str(SCRIPTS), os.environ["PATH"]])
if "source" in lit_config.params:
    config.environment["PYTHONPATH"] = lit_config.params["source"]
config.environment["TRITON_CACHE_DIR"] = str(Path(config.test_exec_root) / "triton-cache")

python = sys.executable
if lit_config.params.get("warm"):
    sys.path.append(str(HERE))
    import warm

    folder = Path(config.test_exec_root) / "warm"
    config.environment["PATH"] = os.pathsep.join([str(folder), config.environment["PATH"]])
    warm.start(folder, config.environment, SCRIPTS)
    python = str(folder / "python")
config.substitutions.append(("%python", python))
config.substitutions.append(("%filecheck", f"{python} -m filecheck"))
config.substitutions.append(("%test_passes", str(HERE / "Inputs" / "test_passes.py")))
