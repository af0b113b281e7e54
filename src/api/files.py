"""Sorts of files: their arguments are checked here, and their formats chosen, for the external sort of src/external."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..external.formats import Format, layout_of, require_known
from ..external.left import left_of, require_all_there
from ..external.plans import bytes_of
from ..external.progress import Progress
from ..external.scratch import Scratch
from ..external.sort import sort_elements
from ..external.work import SortElements, SortRecords, Work, finding_indices
from ..targets.base import Target
from ..types.checks import checked_flag, checked_path
from ..types.dtypes import checked_dtype, key_for
from ..types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from .arguments import ORDERS
from .engine import OwnEngine

Name: TypeAlias = "str | PathLike[str]"
By: TypeAlias = "str | Sequence[str] | None"
Report: TypeAlias = "Callable[[Progress], object] | None"

# Files are locked, and memory is given back, by calls of POSIX, which Windows has not.
HAS_POSIX = find_spec("fcntl") is not None


def sort_file(
    source: Name, target: Name, *, by: By = None, descending: bool = False, stable: bool = False,
    memory: int | str = "auto", target_device: str | Target = "auto", scratch: Name | None = None, resume: bool = False,
    progress: Report = None, dtype: npt.DTypeLike | None = None,
) -> None:  # fmt: skip
    """Sorts a file of any size, `source`, into another file or over itself, in the order of `sort`, or `descending`.

    Files are .npy, of one dimension; .parquet or .arrow, for which pyarrow is needed; or, with any other suffix, raw
    elements of a given `dtype`. Records and tables are sorted `by` a field or column, or by several, the most
    important first; those with equal keys keep their order, and nulls come last. `stable` is that of `sort`, for
    elements that are keys themselves.

    `memory` is the memory to use, in bytes or as "600M" or "1.5GiB"; "auto" is half of what is free. `target_device`
    sorts what fits into memory: "auto" is the CPU, "cuda" a card. A file that does not fit is written in sorted runs to
    the folder `scratch` first (by default the target's), which needs room for as much again. Disk space is checked and
    reserved before anything is sorted; if it is too little, DiskFullError says how much is missing.

    The result is written to `NAME.part` beside the target, and renamed when it is complete and on the disk. A call that
    fails or is interrupted removes its files, unless it was called with `resume=True`. With `resume=True` a sort
    continues from the files of an earlier call that was killed, or that had `resume=True` too, with the memory of that
    call; without such files it starts anew. `progress` is called with a `Progress` after every step.
    """
    _sort(
        source, target, by, descending, memory, target_device, scratch, resume, progress, dtype,
        argsort=False, stable=checked_flag("stable", stable),
    )  # fmt: skip


def argsort_file(
    source: Name, target: Name, *, by: By = None, descending: bool = False, memory: int | str = "auto",
    target_device: str | Target = "auto", scratch: Name | None = None, resume: bool = False, progress: Report = None,
    dtype: npt.DTypeLike | None = None,
) -> None:  # fmt: skip
    """Writes the indices that sort a file, as `argsort` gives them (int64), to another file.

    Equal keys keep their order. The rest is as for `sort_file`; the target is .npy or raw, whatever the source is.
    """
    _sort(source, target, by, descending, memory, target_device, scratch, resume, progress, dtype, argsort=True)


def _sort(
    source: Name, target: Name, by: By, descending: bool, memory: int | str, target_device: str | Target,
    scratch: Name | None, resume: bool, progress: Report, dtype: npt.DTypeLike | None, *, argsort: bool,
    stable: bool = False,
) -> None:  # fmt: skip
    if not HAS_POSIX:
        raise CapabilityError("file sorts need Linux or macOS; arrays, mapped ones too, are sorted on any system")
    order = ORDERS[checked_flag("descending", descending)]
    if progress is not None and not callable(progress):
        raise UnsupportedTypeError(f"progress: expected a function of a Progress, or None, found {progress!r}")
    given, wanted = _source(source), _target(target)
    require_all_there("source", left_of(os.fspath(given), None))
    where = folder_at("scratch", scratch)
    kept, room = Scratch(wanted, where, keep=checked_flag("resume", resume), source=given), bytes_of(memory)
    if dtype is None:
        require_known("source", given)
        require_known("target", wanted)
    engine, is_table = OwnEngine.for_files(target_device, room), [Format.of(path).is_table for path in (given, wanted)]
    if argsort and given == wanted:
        raise InvalidArgumentError(f"target: expected another file than the source, found {wanted}")
    if argsort and is_table[1]:
        raise InvalidArgumentError(f"target: expected .npy or a raw file, found {wanted}")
    if any(is_table):
        if dtype is not None:
            raise InvalidArgumentError(f"dtype: expected none for tables, found {dtype!r}")
        if not argsort and not all(is_table):
            name, path = ("target", wanted) if is_table[0] else ("source", given)
            raise InvalidArgumentError(f"{name}: expected a table, as .parquet or .arrow, found {path}")
        columns = _names(by)
        if find_spec("pyarrow") is None:
            raise InvalidArgumentError(
                f"source: {given} is a table, for which pyarrow is needed: pip install 'gpusort[tables]'"
            )
        from ..external.arrow_values import naming_pyarrow
        from ..external.columns import RowKeys, without_pyarrow
        from ..external.table_files import open_table
        from ..external.tables import TableSort

        keys = RowKeys(open_table(given), columns, order)
        with naming_pyarrow(given):
            if argsort:
                places = finding_indices(keys.dtype, keys.count, keys.dtype.names or (), order, engine)
                sort_elements(keys, places, kept, progress, without_pyarrow(room))
            else:
                TableSort(given, keys, engine, kept, progress).run(room)
        return
    said = None if dtype is None else checked_dtype(dtype)
    if said is not None and Format.of(given) is Format.RAW:
        _fields(said, by)  # before the file's length is found not to be of such elements
    layout = layout_of(given, said)
    fields = _fields(layout.dtype, by)
    if argsort:
        work: Work = finding_indices(layout.dtype, layout.count, fields, order, engine)
    elif fields:
        work = SortRecords(layout.dtype, fields, order, engine)
    else:
        work = SortElements(layout.dtype, order, stable, engine)
    sort_elements(layout, work, kept, progress, room)


def _source(source: Name) -> Path:
    found = _path("source", source)
    if not found.is_file():
        if Path(source).exists():  # as given: /dev/stdin may lead to a pipe that has no path
            raise InvalidArgumentError(f"source: {Path(source)} is not a regular file")
        raise FileNotFoundError(errno.ENOENT, "source: there is no file", str(found))
    return found


def _target(target: Name) -> Path:
    found = _path("target", target)
    if found.is_dir() or not found.parent.is_dir() or os.fspath(target).endswith("/"):  # which a Path has not
        raise InvalidArgumentError(f"target: expected a file in an existing folder, found {found}")
    named = Path(target)  # as given: /dev/stdout may lead to a pipe that has no path
    if named.exists() and not named.is_file():  # a device or a pipe, which the result would be renamed over
        raise InvalidArgumentError(f"target: {target} is not a regular file, and would be replaced")
    return found


def folder_at(name: str, path: object) -> Path | None:
    """A folder, if one is named."""
    found = None if path is None else _path(name, path)
    if found is not None and not found.is_dir():
        raise InvalidArgumentError(f"{name}: expected an existing folder, found {found}")
    return found


def _path(name: str, path: object) -> Path:
    """The path with symbolic links resolved, so that the rename replaces the file and not a link."""
    text = checked_path(name, path)
    try:
        found = Path(text).resolve()
        with suppress(FileNotFoundError, NotADirectoryError):
            found.stat()  # which fails for a name that is too long; from Python 3.14 on `is_file` is just False
        return found
    except PermissionError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # too long, links in a circle, a character that no name has
        raise InvalidArgumentError(
            f"{name}: expected a path, found {text!r}: {getattr(error, 'strerror', None) or error}"
        ) from error


def _names(by: object) -> tuple[str, ...]:
    """The names of fields or columns, each once: a second time it decides nothing."""
    if by is None or isinstance(by, str):
        return () if by is None else (by,)
    names = tuple(cast("Iterable[object]", by)) if isinstance(by, Iterable) else (by,)
    if not all(isinstance(name, str) for name in names) or isinstance(by, set | frozenset):  # sets have no order
        raise UnsupportedTypeError(f"by: expected a name, or a list of names, found {by!r}")
    return tuple(dict.fromkeys(cast("tuple[str, ...]", names)))


def _fields(dtype: np.dtype[Any], by: By) -> tuple[str, ...]:
    """The fields that records are sorted by; empty for elements that are keys themselves."""
    known, found = dtype.names, ", ".join(_names(by)) or "nothing"  # as the command line has them, too
    if known is None:
        if by is not None:
            raise InvalidArgumentError(f"by: elements of dtype {dtype} have no fields to sort by, found {found}")
        key_for(dtype, "source")
        return ()
    fields = _names(by)
    if not fields or not set(fields) <= set(known):
        raise InvalidArgumentError(f"by: expected one or more of {', '.join(known)}, found {found}")
    for field in fields:
        key_for(dtype[field], f"by: {field}")
    if dtype.hasobject:
        raise UnsupportedTypeError(f"source: records of a file hold no Python objects, found {dtype}")
    return fields
