"""`tilepass doctor`: is everything there that tilepass needs, and does the bridge work exactly?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from tilepass.core.flags import add_traceback_flag


def main(arguments: Sequence[str]) -> int:
    """Print the findings; 1 if one of them is a failure."""
    parser = argparse.ArgumentParser(
        prog="tilepass doctor",
        description="Check the installed versions, the machine, that modules go through the IR "
        "bridge unchanged, and that CuTe modules compile. The exit status is 1 if a check fails.",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_traceback_flag(parser)
    options = parser.parse_args(arguments)
    # Here and not above: `--help` must not wait for them.
    from tilepass.doctor import cute, machine, self_test
    from tilepass.doctor.machine import run_check

    checks = (
        machine.check_python,
        machine.check_triton,
        machine.check_packages,
        machine.check_ptxas,
        machine.check_gpu,
        machine.check_cache_folder,
        machine.check_startup_hook,
        self_test.check_passes,
        self_test.check_round_trip,
        cute.check_cute_hook,
        cute.check_cute_compiler,
    )
    findings = [finding for check in checks for finding in run_check(check)]
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print("\n".join(finding.format() for finding in findings))
    return 1 if any(finding.status == "FAIL" for finding in findings) else 0
