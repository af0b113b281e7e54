"""`python -m gpusort`."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command line, which is imported only now: importing this module stays cheap."""
    try:
        from .cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
