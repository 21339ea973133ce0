"""FlashInfer's unmodified prefill class, compiled for sm_90a on the CPU.

The short form of `benchmarks/gdn_prefill/count_mma.py`, which has all classes, chips and modes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cute_evidence import assert_chain, chains
from flashinfer_source import flashinfer

from benchmarks.gdn_prefill.arms import BODIES, parse_arm
from benchmarks.gdn_prefill.by_hand import write_by_hand
from benchmarks.gdn_prefill.counts import AUTO, KERNELS, NAIVE, compile_kernel
from benchmarks.gdn_prefill.source import load_class
from benchmarks.gdn_prefill.wheels import WITHOUT_SKIP, unpacked
from tilepass.core.decisions import Decision
from tilepass.core.errors import OptionError, TilepassError

pytestmark = pytest.mark.traces


def test_auto_gives_the_ptx_of_a_skip_written_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kernel = flashinfer(WITHOUT_SKIP), KERNELS["sm120"]
    monkeypatch.chdir(tmp_path)
    rewritten = compile_kernel(kernel, folder, NAIVE, "sm_90a", "bf16")
    edited = write_by_hand(folder, tmp_path / "edited")
    by_hand = compile_kernel(kernel, edited, "", "sm_90a", "bf16")
    assert rewritten.mma_count == kernel.counts[NAIVE] == 1122
    assert rewritten.ptx == by_hand.ptx
    passed = [remark for remark in rewritten.remarks if "passed: " in remark]
    assert len(passed) == 6
    assert all("12 of 32 atoms left out, order k" in remark for remark in passed)
    evidence = chains(rewritten.remarks)
    assert list(evidence) == [site for body in BODIES for site in body]
    for steps in evidence.values():
        assert_chain(steps, "pred = s >= t")
    # What it would have chosen itself is on record: the first body stays dense.
    own = [_of_the_model(decision) for decision in rewritten.decisions]
    assert own == ["dense"] * 2 + ["n4"] * 4
    assert kernel.counts[""] - 12 * own.count("n4") == kernel.counts[AUTO] == 1146
    assert rewritten.load_count == by_hand.load_count == 705


def test_loads_of_left_out_tiles_go_where_no_atom_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kernel = flashinfer(WITHOUT_SKIP), KERNELS["sm120"]
    monkeypatch.chdir(tmp_path)
    pipeline = parse_arm("k", "assume").pipeline
    rewritten = compile_kernel(kernel, folder, pipeline, "sm_90a", "bf16")
    assert (rewritten.mma_count, rewritten.load_count) == (1122, 669)
    passed = [remark for remark in rewritten.remarks if "loads of" in remark]
    assert len(passed) == 6
    assert all("6 of 16 loads of B left out" in remark for remark in passed)


def _of_the_model(decision: Decision) -> str | None:
    return next(each.value for each in decision.proposals if each.source == "cost-model")


def test_a_folder_without_the_kernels_is_named(tmp_path: Path) -> None:
    with pytest.raises(TilepassError, match=r"no flashinfer/gdn_kernels/.*delta_rule_sm120\.py"):
        load_class(tmp_path)


def test_no_network_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    with pytest.raises(TilepassError, match=r"cannot download flashinfer-python==0\.7\.2\.post1"):
        unpacked(WITHOUT_SKIP, tmp_path)
    assert not (tmp_path / WITHOUT_SKIP).exists()


def test_a_source_with_other_gemms_is_not_edited(tmp_path: Path) -> None:
    package = tmp_path / "old/flashinfer/gdn_kernels/delta_rule_dsl"
    package.mkdir(parents=True)
    (package / "delta_rule_sm120.py").write_text("class Kernel:\n    pass\n")
    with pytest.raises(TilepassError, match=r"expected one 'cute\.gemm\(newv_tiled_mma"):
        write_by_hand(tmp_path / "old", tmp_path / "new")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("n4", "n4"),
        ("dense/n4/k", "10:dense+11:dense+23:n4+24:n4+36:k+37:k"),
        ("k:n4", "10:k+11:n4+23:k+24:n4+36:k+37:n4"),
    ],
)
def test_arms_of_the_study(text: str, order: str) -> None:
    assert parse_arm(text, "auto").pipeline == f"cute-zero-mma{{mode=auto,order={order}}}"


def test_arms_with_the_copies_of_the_state_vectorized() -> None:
    assert parse_arm("vectorized", "auto").pipeline == "cute-vectorize-copies"
    both = parse_arm("vectorized+n4", "auto").pipeline
    assert both == "cute-vectorize-copies,cute-zero-mma{mode=auto,order=n4}"


def test_an_arm_of_two_bodies_is_refused() -> None:
    with pytest.raises(OptionError, match="expected ORDER or FIRST/LOOP/LAST"):
        parse_arm("k/n4", "auto")
