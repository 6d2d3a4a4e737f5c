"""The `offlock` command: `offlock` or `python -m offlock`."""

import os
import signal
import sys

from ._offlock import run_cli


def main() -> int:
    """Runs the command with the arguments in `sys.argv` and returns its exit status."""
    # The command runs in native code, where Python's handler for Ctrl-C would never run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # `offlock trace` puts this folder on the PYTHONPATH of the programs that it starts.
    os.environ.setdefault(
        "OFFLOCK_PYTHONPATH", os.path.join(os.path.dirname(os.path.abspath(__file__)), "_autotrace")
    )
    return run_cli(["offlock", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
