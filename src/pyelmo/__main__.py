"""`python -m pyelmo` and the command `elmo`.

Until the command handles Ctrl-C itself, that is while Python imports it, Ctrl-C ends the process with one line.
"""

import os
import signal
import sys


def main() -> int:
    """Run the command and return its exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as it is for a job of nohup
        signal.signal(signal.SIGINT, _quit)
    from pyelmo.cli import main as run_command

    return run_command()


def _quit(number: int, frame: object) -> None:
    os.write(2, b"elmo: interrupted; nothing was changed\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
