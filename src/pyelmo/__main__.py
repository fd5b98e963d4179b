"""`python -m pyelmo` is the command `elmo`."""

import sys

from pyelmo.cli import main

if __name__ == "__main__":
    sys.exit(main())
