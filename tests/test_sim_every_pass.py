"""Kernels executed after every pass of Triton that changes them: the same bits all the way."""

from __future__ import annotations

import pytest

from tests.sim_every_pass import QUICK, Case, Specialized

# What every pipeline for the target runs, and what it changes in all of these kernels.
LEAST_FORMS = 6


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_every_form_computes_the_same(case: Case) -> None:
    forms, wrong = case.run()
    assert wrong is None
    assert forms >= LEAST_FORMS


@pytest.mark.parametrize("arch", [90, 100])
def test_forms_of_a_warp_specialized_kernel(arch: int) -> None:
    forms, wrong = Specialized(arch).run()
    assert wrong == []
    assert len(forms) > LEAST_FORMS


def test_triton_specializes_a_pointer_store_wrongly() -> None:
    """On Hopper the second half of a tile goes to rows 64 further down: the offset of the second
    consumer is in the tile's origin and again in its range of rows."""
    forms, wrong = Specialized(90, pointer_store=True).run()
    first = next(index for index, name in enumerate(forms) if name in wrong)
    assert forms[first].endswith("nvgpu-warp-specialization")
    assert wrong == forms[first:]
