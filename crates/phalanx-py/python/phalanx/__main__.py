"""The command line: `phalanx`, or `python -m phalanx`."""

from __future__ import annotations

import sys

from ._phalanx import command_line


def main() -> None:
    """Runs the command that this process was called with."""
    sys.exit(command_line(["phalanx", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
