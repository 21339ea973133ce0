"""`python -m tilepass COMMAND ...`: the same as `tilepass COMMAND ...`."""

import sys

from tilepass.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
