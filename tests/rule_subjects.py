"""The modules whose rules must not be wrong, and the tests that concern each."""

from __future__ import annotations

from tests.rule_mutants_run import Subject

_ZERO, _PROTOCOL = "analysis/zero_structure", "sim/protocol"
_INTEGERS = "tests/test_zero_structure_integers.py"
_DATA = "tests/test_zero_structure_data.py"
_OPS = "tests/test_zero_structure_ops.py"
_SITES = "tests/test_zero_structure_sites.py"
_KERNELS = "tests/test_zero_structure.py"

_DOMAINS = {
    "intervals.py": (_INTEGERS, _DATA, _OPS, _KERNELS),
    "integers.py": (_INTEGERS, _OPS, _KERNELS),
    "zero_bytes.py": (_DATA, _OPS, _KERNELS),
    "floats.py": (_DATA, _OPS, _KERNELS),
    "values.py": (_DATA, _OPS, _KERNELS),
    "private.py": (_DATA, _OPS, _KERNELS),
    "shared.py": (_DATA, _OPS, _KERNELS),
}

_RULES = ("tests/test_sim_protocol_exact.py", "tests/test_sim_protocol_rules.py")
_PROTOCOLS = (*_RULES, "tests/test_sim_protocol.py", "tests/test_sim_protocol_fences.py")
_PASS = "passes/triton/epilogue_warp_specialize"
_LIT = "lit_tests/passes/triton"
_REFUSED = tuple(
    f"{_LIT}/epilogue-warp-specialize{suffix}.mlir"
    for suffix in ("-refused", "-epilogues", "-descriptors", "-early-return", "-targets", "",
                   "-counts", "-cut", "-cut-refused", "-ranks")
)  # fmt: skip
_MATCHED = ("tests/test_ws_match.py", "tests/test_ws_rules.py")
_FUSION = ("tests/test_passes_fusion.py",)
_FLATTENED = tuple(
    f"{_LIT}/flatten-loops{suffix}.mlir"
    for suffix in ("-refused", "", "-errors", "-warp-specialized", "-3.6", "-3.6-refused", "-3.9")
)

_INTERPRETED = (
    *("control", "machine", "owners", "types", "program", "effects", "entry"),
    *("ops_numbers", "ops_memory", "ops_gpu"),
)
_DOTS = ("tests/test_analysis_dots.py", "tests/test_passes_dot_registers.py")
_WAITS = tuple(
    f"{_LIT}/{name}.mlir" for name in ("fix-dot-wait", "fix-dot-wait-registers", "acc-multi-buffer")
)

SUBJECTS = (
    *(Subject(f"{_ZERO}/{name}", tests) for name, tests in _DOMAINS.items()),
    *(Subject(f"{_ZERO}/{name}.py", (_OPS, _SITES, _KERNELS)) for name in _INTERPRETED),
    *(Subject(f"analysis/{name}.py", _DOTS, _WAITS) for name in ("dot_waits", "dot_registers")),
    *(
        Subject(f"{_PROTOCOL}/{name}.py", _PROTOCOLS)
        for name in ("barrier", "machine", "memory", "events", "compiler", "check")
    ),
    *(
        Subject(f"{_PASS}/{name}.py", _MATCHED, _REFUSED)
        for name in ("order", "match", "match_main_loop")
    ),
    *(
        Subject(module, ("tests/test_analysis_trip_count.py", *_FUSION), _FLATTENED)
        for module in ("analysis/trip_count.py", "ir/walks.py")
    ),
    *(
        Subject(f"analysis/{name}.py", (f"tests/test_analysis_{name}.py", *_FUSION), _FLATTENED)
        for name in ("memory_order", "loop_fusion", "nest_facts")
    ),
    Subject("ir/induction.py", ("tests/test_ir_induction.py",), _REFUSED[-4:]),
    Subject("analysis/bounds.py", ("tests/test_passes_bounds.py", *_FUSION)),
)
