"""`python -m gpusort`."""

from __future__ import annotations

import sys


def main() -> int:
    """The command line, imported only now: the module may be imported without one."""
    from .cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
