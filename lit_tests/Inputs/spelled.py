"""Print a file with tensor descriptors spelled for the installed Triton; line numbers stay.

usage: python spelled.py FILE

The file spells them as Triton 3.6 and 3.7 do: !tt.tensordesc<tensor<128x64xbf16, #shared>>.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

_WRAPPED = re.compile(r"(tensordesc|, )<tensor<([^<>]*)>>")


def main() -> int:
    text = Path(sys.argv[1]).read_text()
    major, minor = map(int, metadata.version("triton").split(".")[:2])
    if (major, minor) >= (3, 8):
        text = _WRAPPED.sub(r"\1<\2>", text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
