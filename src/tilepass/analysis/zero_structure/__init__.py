"""Zero structure."""

from tilepass.analysis.zero_structure.entry import analyse
from tilepass.analysis.zero_structure.facts import (
    Assumption,
    Failure,
    Limits,
    SiteZeros,
    Step,
    ZeroStructure,
)
from tilepass.analysis.zero_structure.sites import gemms_of, tag_sites

__all__ = [
    "Assumption",
    "Failure",
    "Limits",
    "SiteZeros",
    "Step",
    "ZeroStructure",
    "analyse",
    "gemms_of",
    "tag_sites",
]
