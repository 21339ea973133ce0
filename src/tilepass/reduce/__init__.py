"""Makes a module smaller while a command still fails on it: `edits` are what may be done to the
module, `trial` runs the command on a candidate, `search` decides what is tried."""

from tilepass.reduce.search import Reduction, reduce
from tilepass.reduce.trial import Command, Failing

__all__ = ["Command", "Failing", "Reduction", "reduce"]
