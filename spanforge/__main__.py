"""`python -m spanforge` is `spanforge`."""

import sys

from spanforge.cli import main

if __name__ == "__main__":
    sys.exit(main())
