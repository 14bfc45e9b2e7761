"""The program ``moelab``: ``python -m moelab run FILE``, and the command that the wheel installs."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the command line and returns its exit status."""
    # Python would only note the signal until the program returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
