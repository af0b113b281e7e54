"""Whether disks have room for a sort's files, and the error where they have not."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..types.errors import DiskFullError
from .direct import whole_pages
from .scratch import PART, SCRATCH


def require_disk_space(files: Mapping[Path, int]) -> None:
    """Raises DiskFullError unless files of these sizes fit on their disks, counting the blocks that they have."""
    wanted: dict[int, tuple[Path, int, bool]] = {}
    for path, nbytes in files.items():
        held = path.stat().st_blocks * 512 if path.exists() else 0
        more, is_result = max(0, whole_pages(nbytes) - held), path.name.endswith(PART)
        folder = path.parent.parent if path.parent.name.endswith(SCRATCH) else path.parent  # one that stays
        device = path.parent.stat().st_dev
        folder, before, has_scratch = wanted.get(device, (folder, 0, False))
        wanted[device] = folder, before + more, has_scratch or (more > 0 and not is_result)
    for folder, nbytes, has_scratch in wanted.values():
        free = shutil.disk_usage(folder).free
        if nbytes > free:
            raise disk_full(folder, nbytes, free, has_scratch=has_scratch)


def disk_full(folder: Path, nbytes: int, free: int, *, has_scratch: bool) -> DiskFullError:
    """The error; where scratch files take some of the room it says that they need not, and where enough is free, what
    else may have run out."""
    text = f"sorting takes {nbytes:,} bytes more in {folder}, where {free:,} are free"
    if free >= nbytes:
        text += " now: a quota or the inodes may be used up, or others have had the room for a while"
    if has_scratch:
        text += "; scratch files may lie elsewhere (scratch=, --scratch; of mapped arrays GPUSORT_SCRATCH)"
    return DiskFullError(errno.ENOSPC, text)


@contextmanager
def raising_disk_full(nbytes: int, *folders: Path) -> Generator[None, None, None]:
    """Translates ENOSPC and EDQUOT to DiskFullError, naming the fullest of the folders' disks. The first is that of
    scratch files."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise OSError(
                errno.EFBIG, f"a file of {nbytes:,} bytes is more than this process may write (ulimit -f), or than "
                f"{' or '.join(dict.fromkeys(map(str, folders)))} takes"
            ) from error  # fmt: skip
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or isinstance(error, DiskFullError):
            raise
        free, number = min((shutil.disk_usage(folder).free, number) for number, folder in enumerate(folders))
        raise disk_full(folders[number], nbytes, free, has_scratch=number == 0) from error
