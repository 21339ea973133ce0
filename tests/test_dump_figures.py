"""Static figures, held against the tools that they come from."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from dump_kernels import GFX942, SM80, SM90, compile_matmul

from tilepass.binary.artifacts import Artifacts, artifacts_of, read_artifacts
from tilepass.binary.elf import code_hash, sections
from tilepass.binary.figures import kernel_figures
from tilepass.binary.ptxas import parse_log
from tilepass.binary.sass import count_instructions, listing
from tilepass.binary.tools import find_tools
from tilepass.core.errors import TilepassError


@pytest.fixture(scope="module")
def kernel() -> Artifacts:
    return artifacts_of(compile_matmul(SM90))


@pytest.fixture(scope="module")
def spilling() -> Artifacts:
    """With too few registers for its accumulator."""
    return artifacts_of(compile_matmul(SM80, maxnreg=40))


def ptxas_figures(kernel: Artifacts, folder: Path) -> dict[str, int]:
    """What `ptxas -v` says, read in another way than figures.py does."""
    tools = find_tools(kernel.metadata["target"].arch)
    source = folder / "kernel.ptx"
    source.write_text(kernel.texts["ptx"])
    command = [tools.ptxas, "-v", "-lineinfo", f"--gpu-name={tools.gpu_name}", str(source)]
    log = subprocess.run(
        [*command, "-o", str(folder / "out.cubin")], capture_output=True, text=True, check=True
    ).stderr
    numbers = {name: int(value) for value, name in re.findall(r"(\d+) bytes ([a-z ]+)", log)}
    return {**numbers, "registers": int(log.split("Used ")[1].split()[0])}


@pytest.mark.parametrize("which", ["kernel", "spilling"])
def test_figures_agree_with_ptxas(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    artifacts: Artifacts = request.getfixturevalue(which)
    figures = kernel_figures(artifacts)
    expected = ptxas_figures(artifacts, tmp_path)
    assert figures.registers == expected["registers"]
    assert figures.spill_store_bytes == expected["spill stores"]
    assert figures.spill_load_bytes == expected["spill loads"]
    assert figures.stack_bytes == expected["stack frame"]
    assert (figures.spill_store_bytes > 0) == (which == "spilling")


def test_instructions_are_counted_as_in_the_listing(kernel: Artifacts) -> None:
    figures = kernel_figures(kernel)
    code = listing(kernel)
    for family in ("HGMMA", "BAR", "LDSM", "LDGSTS"):
        lines = [line for line in code.splitlines() if re.search(rf"\*/ .*\b{family}\b", line)]
        assert figures.families[family] == len(lines), family
    assert figures.families["HGMMA"] > 0
    # Every instruction line holds one operation, and none is missed.
    instructions = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", code, re.M)
    assert sum(figures.instructions.values()) == len(instructions)


def test_guarded_instructions_count() -> None:
    code = (
        "        /*0010*/  @!UP2 UTMALDG.2D [UR8], [UR4] ;\n        /*0020*/ @P0 BAR.SYNC 0x1 ;\n"
    )
    assert count_instructions(code, nvidia=True) == {"BAR": 1, "UTMALDG": 1}


def test_shared_memory_is_what_the_launch_asks_for_and_what_the_binary_holds(
    kernel: Artifacts,
) -> None:
    figures = kernel_figures(kernel)
    assert figures.shared_bytes is not None
    assert figures.shared_bytes == kernel.metadata["shared"] > 0
    assert f"shared {figures.shared_bytes + figures.static_shared_bytes} B" in figures.summary()


def test_hashes_tell_what_differs(kernel: Artifacts, spilling: Artifacts) -> None:
    figures, other = kernel_figures(kernel), kernel_figures(spilling)
    assert figures.binary_hash == hashlib.sha256(kernel.binary).hexdigest()
    assert figures.assembly_hash != other.assembly_hash
    assert figures.code_hash != other.code_hash
    moved = re.sub(r"\.loc\t(\d+) \d+", r".loc\t\1 77", kernel.texts["ptx"])
    assert moved != kernel.texts["ptx"]
    relocated = replace(kernel, texts={**kernel.texts, "ptx": moved})
    assert kernel_figures(relocated).assembly_hash == figures.assembly_hash


def test_the_code_section_is_found(kernel: Artifacts) -> None:
    names = [section.name for section in sections(kernel.binary)]
    assert f".text.{kernel.name}" in names
    (code,) = (each.content for each in sections(kernel.binary) if each.name.startswith(".text."))
    at = kernel.binary.index(code) + len(code) // 2
    changed = kernel.binary[:at] + bytes([kernel.binary[at] ^ 1]) + kernel.binary[at + 1 :]
    assert code_hash(changed) != code_hash(kernel.binary)
    assert code_hash(kernel.binary + b"behind all sections") == code_hash(kernel.binary)


def test_a_file_is_read_with_its_neighbours(kernel: Artifacts, tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(kernel.binary)
    (tmp_path / "k.ptx").write_text(kernel.texts["ptx"])
    metadata = {**kernel.metadata, "target": {"backend": "cuda", "arch": 90, "warp_size": 32}}
    (tmp_path / "k.json").write_text(json.dumps(metadata, default=str))
    assert read_artifacts(tmp_path / "k.cubin").name == "small_matmul"
    assert kernel_figures(tmp_path / "k.cubin") == kernel_figures(kernel)


def test_amd_figures_come_from_the_assembly() -> None:
    kernel = artifacts_of(compile_matmul(GFX942))
    figures = kernel_figures(kernel)
    text = kernel.texts["amdgcn"]
    assert figures.target == "hip:gfx942"
    assert figures.registers == int(text.split(".vgpr_count:")[1].split()[0])
    assert figures.families["MFMA"] == len(re.findall(r"^\s+v_mfma", text, re.M)) > 0


def test_amd_spills_whatever_the_instruction() -> None:
    kernel = artifacts_of(compile_matmul(GFX942))
    lines = (
        "buffer_store_dword v0, off, s[96:99], 0 offset:188 ; 4-byte Folded Spill",
        "scratch_store_dwordx2 off, v[2:3], off offset:8 ; 8-byte Folded Spill",
        "scratch_load_b128 v[0:3], off, off offset:1232 ; 16-byte Folded Reload",
    )
    text = kernel.texts["amdgcn"].replace("\ts_endpgm", "\n\t".join(("", *lines, "s_endpgm")), 1)
    figures = kernel_figures(replace(kernel, texts={"amdgcn": text}))
    assert (figures.spill_store_bytes, figures.spill_load_bytes) == (12, 16)
    unspilled = kernel_figures(kernel)
    assert (unspilled.spill_store_bytes, unspilled.spill_load_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not elf", "not a 64-bit little-endian ELF"),
        (b"\x7fELF\x02\x01" + b"\0" * 20, "is damaged"),
    ],
)
def test_damaged_binaries_are_named(content: bytes, message: str) -> None:
    with pytest.raises(TilepassError, match=message):
        code_hash(content)


def test_missing_things_are_named(kernel: Artifacts, tmp_path: Path) -> None:
    with pytest.raises(TilepassError, match=r"nothing\.cubin: no such file"):
        kernel_figures(tmp_path / "nothing.cubin")
    with pytest.raises(TilepassError, match=r"expected a file named \*\.cubin"):
        kernel_figures(tmp_path / "kernel.ptx")
    with pytest.raises(TilepassError, match="its PTX is needed"):
        kernel_figures(replace(kernel, texts={}))
    with pytest.raises(TilepassError, match="names no target"):
        kernel_figures(replace(kernel, metadata={}))
    with pytest.raises(TilepassError, match=r"ptxas.* failed with exit status"):
        kernel_figures(replace(kernel, texts={"ptx": "nonsense"}))


LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for helper
    4 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due\
 to insufficient register resources for the wgmma pipeline in the function 'k'
ptxas warning : Value of threads per SM for entry k is out of range. .minnctapersm will be ignored
ptxas info    : Compile time = 19.7 ms
"""


def test_ptxas_logs() -> None:
    report = parse_log(LOG)
    assert (report.entry, report.registers) == ("k", 168)
    assert (report.stack_bytes, report.spill_store_bytes, report.spill_load_bytes) == (20, 9, 14)
    assert [message[:7] for message in report.messages] == ["(C7510)", "Value o"]
    assert report.serialized
    with pytest.raises(TilepassError, match="ptxas printed no figures"):
        parse_log("ptxas info : nothing")
