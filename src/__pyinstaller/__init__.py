"""What PyInstaller is to put into programs that use gpusort: it asks installed packages for hooks."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    return [str(Path(__file__).parent)]
