"""The `offlock` command: `offlock` or `python -m offlock`."""

import os
import signal
import sys

from ._offlock import run_cli


def main() -> int:
    """Runs the command with the program's arguments and returns its exit status."""
    # It runs in native code: Ctrl-C ends it as it ends any other program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Where `offlock trace` finds what makes a Python program trace itself.
    os.environ.setdefault(
        "OFFLOCK_PYTHONPATH", os.path.join(os.path.dirname(os.path.abspath(__file__)), "_autotrace")
    )
    return run_cli(["offlock", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
