"""The search for overwritten wgmma operands, on SASS made by hand."""

from __future__ import annotations

import pytest

from tilepass.binary.register_hazards import RegisterHazard, find_register_hazards


def loop(*instructions: str) -> str:
    """A listing as nvdisasm prints it: a loop over `instructions`."""
    lines = [".L_x_1:"]
    lines += [
        f"        /*{16 * index:04x}*/                   {instruction} ;"
        for index, instruction in enumerate((*instructions, "@P0 BRA `(.L_x_1)"))
    ]
    return "\n".join(lines)


WGMMA = "HGMMA.64x64x16.F32.BF16 R24, R88, gdesc[UR8].tnspB, R24, gsb0"


def test_a_register_written_while_the_last_wgmma_reads_it() -> None:
    sass = loop("LDS.128 R88, [R4]", WGMMA, "WARPGROUP.DEPBAR.LE gsb0, 0x1")
    found = find_register_hazards(sass)
    assert [hazard.register for hazard in found] == [88, 89, 90, 91]
    assert found[0] == RegisterHazard("LDS.128 R88, [R4]", 88, 0)


@pytest.mark.parametrize(
    "instructions",
    [
        pytest.param(
            ("LDS.128 R88, [R4]", WGMMA, "WARPGROUP.DEPBAR.LE gsb0, 0x0"), id="waited for"
        ),
        pytest.param(
            ("LDS.64 R92, [R4]", WGMMA, "WARPGROUP.DEPBAR.LE gsb0, 0x1"), id="another register"
        ),
        pytest.param(
            ("STS.128 [R88], R88", "@P1 ST.E R88, R89", WGMMA, "WARPGROUP.DEPBAR.LE gsb0, 0x1"),
            id="read, not written",
        ),
        pytest.param(("MOV R88, R4", WGMMA.replace("R88", "gdesc[UR4]")), id="A in shared memory"),
    ],
)
def test_no_hazard(instructions: tuple[str, ...]) -> None:
    assert not find_register_hazards(loop(*instructions))


def test_only_what_a_wait_leaves_unfinished_counts() -> None:
    """Two groups a step, one unfinished at the back edge: R88's is done, R92's is not."""
    sass = loop(
        "MOV R88, R4",
        "MOV R92, R5",
        WGMMA,
        WGMMA.replace("R88", "R92"),
        "WARPGROUP.DEPBAR.LE gsb0, 0x1",
    )
    assert find_register_hazards(sass) == [RegisterHazard("MOV R92, R5", 92, 0)]


def test_wgmmas_without_a_scoreboard_belong_to_the_next_group() -> None:
    uncommitted = WGMMA.replace(", gsb0", "")
    sass = loop("MOV R88, R4", uncommitted, WGMMA.replace("R88", "R92"))
    assert [hazard.age for hazard in find_register_hazards(sass)] == [0]


def test_code_outside_loops_is_not_looked_at() -> None:
    assert not find_register_hazards(f"  /*0000*/  {WGMMA} ;\n  /*0010*/  MOV R88, R4 ;")
