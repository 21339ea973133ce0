"""The modules whose rules must not be wrong, and the tests that concern each."""

from __future__ import annotations

from tests.rule_mutants_run import Subject

_ZERO, _PROTOCOL = "analysis/zero_structure", "sim/protocol"
_INTEGERS = "tests/test_zero_structure_integers.py"
_DATA = "tests/test_zero_structure_data.py"
_KERNELS = "tests/test_zero_structure.py"

_DOMAINS = {
    "intervals.py": (_INTEGERS, _DATA, _KERNELS),
    "integers.py": (_INTEGERS, _KERNELS),
    "known_integers.py": (_INTEGERS,),
    "zero_bytes.py": (_DATA, _KERNELS),
    "floats.py": (_DATA, _KERNELS),
    "values.py": (_DATA, _KERNELS),
    "private.py": (_DATA, _KERNELS),
    "shared.py": (_DATA, _KERNELS),
}

SUBJECTS = (*(Subject(f"{_ZERO}/{name}", tests) for name, tests in _DOMAINS.items()),)
