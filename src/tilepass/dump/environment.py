"""How `dump-ir` reaches the processes of a program: one environment variable."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tilepass.core.errors import OptionError
from tilepass.dump.kernel_files import RecorderOptions
from tilepass.dump.recorder import Recorder
from tilepass.variables import EMPTY_PIPELINE


def encode(options: RecorderOptions) -> str:
    """Options as the value of an environment variable."""
    return json.dumps(
        {
            "folder": str(options.folder),
            "only_changed": options.only_changed,
            "locations": options.locations,
            "kernels": options.kernels.pattern,
        }
    )


def recorder_of_environment(variable: str, value: str, pipeline: str) -> Recorder:
    """A recorder for a program that goes on when recording fails, by the value of `variable`.

    Raises OptionError for a value that `encode` did not make.
    """
    from tilepass.core.versions import triton_version

    try:
        fields = json.loads(value)
        options = RecorderOptions(
            Path(fields["folder"]),
            fields["only_changed"],
            fields["locations"],
            re.compile(fields["kernels"]),
        )
    except (ValueError, KeyError, TypeError, re.error) as error:
        why = f"{type(error).__name__}: {error}"
        raise OptionError(
            f"{variable} is '{value}': only tilepass dump-ir sets it ({why})"
        ) from error
    return Recorder(
        options,
        compiler=str(triton_version()),
        pipeline="" if pipeline == EMPTY_PIPELINE else pipeline,
        fail_softly=True,
    )
