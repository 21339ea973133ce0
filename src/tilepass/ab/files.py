"""Writing reports to files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilepass.core.errors import TilepassError


def write_json(path: Path, content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a file whole or not at all: a reader never finds half of it. Raises TilepassError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(content, file, indent=1)
                file.write("\n")
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise TilepassError(f"{path}: cannot write: {error.strerror}") from error
