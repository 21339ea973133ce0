"""Triton's own passes by name, and the versions that are supported."""

from __future__ import annotations

from typing import Any

import pytest
from triton._C import libtriton

from tilepass.core.errors import OptionError, UnsupportedVersionError
from tilepass.core.pass_base import CompilerVersion, Target
from tilepass.core.versions import TRITON, triton_version
from tilepass.frontends.triton.builtin_passes import discover
from tilepass.frontends.triton.modules import new_context

SINCE_3_9 = triton_version().version >= (3, 9)


def added(name: str, options: dict[str, str], target: Target | None = None) -> str:
    """The pipeline text after adding a pass to an empty manager."""
    manager: Any = libtriton.ir.pass_manager(new_context())
    discover()[name].add(manager, options, target)
    return manager.get_pipeline_str()


def test_all_passes_are_found() -> None:
    names = set(discover())
    assert len(names) == (112 if SINCE_3_9 else 90)
    assert ("triton-nvidia-gpu-plan-cta" in names) != SINCE_3_9
    assert ("triton-nvidia-gpu-assign-cga-layouts" in names) == SINCE_3_9
    assert {"canonicalize", "tritongpu-pipeline", "tritonamdgpu-fold-true-cmpi"} <= names


def test_every_pass_can_be_added() -> None:
    target = Target("cuda", 90)
    for name in discover():
        assert name in added(name, {}, target)


def test_options_reach_the_pass() -> None:
    pipeline = added("tritongpu-pipeline", {"num-stages": "7", "dump-intermediate-steps": "true"})
    assert "dump-intermediate-steps=true" in pipeline
    assert "num-stages=7" in pipeline
    assert "num-stages=3" in added("tritongpu-pipeline", {})


def test_the_target_gives_defaults() -> None:
    converted = added("convert-triton-to-tritongpu", {}, Target("hip", "gfx942", 64))
    assert "target=hip:gfx942" in converted
    assert "threads-per-warp=64" in converted
    fence = "triton-nvidia-gpu-fence-insertion"
    assert "compute-capability=100" in added(fence, {}, Target("cuda", 100))
    assert "compute-capability=80" in added(fence, {"compute-capability": "80"}, Target("cuda", 90))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tritongpu-pipeline", {"stages": "3"}, "no option 'stages'; did you mean 'num-stages'"),
        ("tritongpu-pipeline", {"num-stages": "x"}, "option 'num-stages': 'x' is not an integer"),
        ("tritongpu-F32DotTC", {"emu-tf32": "3"}, "option 'emu-tf32': '3' is not true or false"),
        ("canonicalize", {"max-iterations": "3"}, "bindings fix it at '10'"),
        ("cse", {"x": "1"}, r"no option 'x' \(options: none\)"),
        ("triton-nvidia-gpu-fence-insertion", {}, "needs its option 'compute-capability'"),
    ],
)
def test_option_errors(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        added(name, options)
    assert f"pass '{name}'" in str(caught.value)


def test_fixed_options_may_be_given_their_value() -> None:
    assert "max-iterations=10" in added("canonicalize", {"max-iterations": "10"})


def test_versions() -> None:
    assert TRITON.check("3.6.0") == CompilerVersion("triton", (3, 6, 0))
    assert TRITON.check("3.9.1+git0123abc").version == (3, 9, 1)
    for text in ("3.5.1", "3.10.0", "4.0", "", "main"):
        with pytest.raises(UnsupportedVersionError, match=r"needs triton >= 3\.6, < 3\.10"):
            TRITON.check(text)
