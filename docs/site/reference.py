"""The API reference: which names stand on which page. Signatures and docstrings are read from the source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from enum import Enum, EnumType
from importlib import import_module
from pathlib import Path
from typing import cast

import attrs


@attrs.frozen
class Page:
    """One page: names of `gpusort`, or of one of its modules."""

    name: str
    title: str
    about: str
    names: tuple[str, ...]
    module: str = "gpusort"

    @property
    def path(self) -> str:
        return f"reference/{self.name}.md"

    def text(self) -> str:
        return "\n\n".join([f"# {self.title}", self.about, *(_entry(self.module, name) for name in self.names)]) + "\n"


_LANGUAGE = "Of the [kernel language](../kernel-language.md)."
PAGES = (
    Page("sorting", "Sorting",
         "Arrays may be of any of these [libraries](../arrays.md), and results are of the same.",
         ("sort", "sort_inplace", "argsort", "sort_by_key", "merge", "merge_by_key", "top_k", "SortOrder", "key_for")),
    Page("files", "Sorting files", "Of any size. [How to](../howto/files.md).",
         ("sort_file", "argsort_file", "Progress")),
    Page("several-devices", "Several devices",
         "One sort over several GPUs, or with a process for each. [How to](../howto/several-devices.md).",
         ("sort", "argsort", "sort_by_key", "sort_shard", "argsort_shard", "sort_by_key_shard", "Communicator"),
         "gpusort.multi"),
    Page("dask", "Dask arrays and dataframes", "Nothing is computed when they are called. [How to](../howto/dask.md).",
         ("sort", "argsort", "sort_by_key", "top_k", "unique", "sort_values"), "gpusort.dask"),
    Page("reducing", "Reducing and scanning", "By what is built in, or by a monoid of your own, of the same arrays.",
         ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "cumsum", "reduce", "scan", "number_for")),
    Page("prepared", "Prepared calls", "Compiled and allocated once.", ("plan", "PreparedCall")),
    Page("export", "Exports", "For programs outside Python: [how](../howto/export.md).", ("export",)),
    Page("targets", "Targets", "Who runs the kernels.",
         ("targets", "target", "Target", "TargetInfo", "Limits", "Capability", "Unavailable")),
    Page("algorithms", "Algorithms and policies", "How a sort, a reduction or a scan is done, as values.",
         ("SortAlgorithm", "Bitonic", "BitonicRows", "Radix", "RadixRows", "SerialRadix", "HostSort", "BitonicPolicy",
          "RadixPolicy", "SerialRadixPolicy", "HostSortPolicy", "ReducePolicy", "ScanPolicy", "tune", "forget_tuning")),
    Page("exceptions", "Exceptions", "Each has a standard base besides. When they are raised: [errors](../errors.md).",
         ("GpusortError", "UnsupportedTypeError", "InvalidArgumentError", "TargetUnavailableError", "CapabilityError",
          "DeviceLostError", "DeviceMemoryError", "DiskFullError", "FileChangedError", "RankFailedError")),
    Page("reports", "Reports on kernels", "What the simulator and the other targets say of a kernel or a monoid.",
         ("OutOfBoundsError", "UninitializedReadError", "DataRaceError", "BarrierDivergenceError", "MonoidError",
          "IterationLimitError"), "gpusort.types.errors"),
    Page("webgpu", "Arrays in wgpu's buffers", "For a device that you have opened.",
         ("open_device", "array", "asarray", "Array"), "gpusort.webgpu"),
    Page("scalars", "Scalars", _LANGUAGE,
         ("Bool", "U8", "U16", "U32", "U64", "I32", "I64", "F32", "F64"), "gpusort.types.scalars"),
    Page("intrinsics", "Functions of scalars", _LANGUAGE,
         ("minimum", "maximum", "add_nowrap", "select", "count_ones", "leading_zeros", "trailing_zeros", "sqrt", "exp",
          "log", "bitcast", "dynamic_range"), "gpusort.types.intrinsics"),
    Page("invocation", "The invocation", _LANGUAGE, ("Invocation",), "gpusort.types.invocation"),
    Page("memory", "Memory", _LANGUAGE, ("Storage", "Workgroup", "Registers"), "gpusort.types.memory"),
    Page("keys", "Keys", "How elements are ordered. [How to write one](../howto/own-key.md).",
         ("SortableKey", "UnsignedKey", "SignedKey", "TimeKey", "FloatKey", "RankKey"), "gpusort.types.keys"),
    Page("monoids", "Monoids", "What a reduction combines. [How to write one](../howto/own-monoid.md).",
         ("Monoid", "Sum", "Product", "Minimum", "Maximum", "MinMax", "AnyTrue", "AllTrue"), "gpusort.types.monoids"),
    Page("searches", "Monoids that find a place", "Where the least or the greatest element stands.",
         ("ArgMin", "ArgMax"), "gpusort.types.searches"),
    Page("kernels", "Kernels", "What makes a kernel of a function.", ("kernel", "Kernel"), "gpusort.kernel.kernel"),
    Page("launches", "Launches", "Which kernels run over what, as plain data.",
         ("Buffer", "Role", "Grid", "Launch", "Schedule"), "gpusort.kernel.launch"),
    Page("needs", "Needs", "What a kernel takes for granted of its machine.",
         ("Policy", "Needs"), "gpusort.types.needs"),
    Page("calls", "Functions of arrays of your own", "[How to write one](../extending.md#a-new-operation-on-arrays).",
         ("call", "call_with"), "gpusort.api.call"),
    Page("operations", "Operations on arrays", "What a function of arrays asks for.",
         ("Operation", "AlongAxis", "Output", "Part", "Copy", "Work", "Works", "single", "copying", "rows_together",
          "key_of"), "gpusort.operations.base"),
    Page("pieces", "Rows in pieces", "For operations on rows that no binding holds.",
         ("Piece", "Slots", "fits_binding", "pieces_of", "require_counted", "by_indices", "taking"),
         "gpusort.operations.pieces"),
    Page("kinds", "Kinds of arrays", "[How to write one](../extending.md#a-kind-of-array).",
         ("ArrayKind", "Viewed", "Located", "Device"), "gpusort.arrays.kinds"),
    Page("reductions", "Reductions of your own", "An operation over a monoid.",
         ("Reduction",), "gpusort.operations.reduce"),
    Page(
        "overridable", "Overridable helpers", "Which a target may write in its own way.",
        ("overridable",), "gpusort.types.intrinsics",
    ),
)  # fmt: skip


def index() -> str:
    """The page that leads to all others."""
    lines = [
        "# Reference",
        "Every public name, with its signature. In these `Where` is the name of a target or a `Target`, `Keyed` a "
        "`SortableKey` or None, `Chosen` a `SortAlgorithm` or None; `Axis` and `AxisOrAll` are an int or None, `Axis` "
        "also a tuple of ints.",
        "",
    ]
    for page in PAGES:
        names = ", ".join(f"`{name}`" for name in page.names)
        lines.append(f"- [{page.title}]({page.name}.md) (`{page.module}`): {names}")
    return "\n".join(lines) + "\n"


def _entry(module: str, name: str) -> str:
    found: object = getattr(import_module(module), name)
    if name == "targets":  # a package that can be called: what it calls is documented
        return "::: gpusort.targets.registry.targets"
    if name == "export":  # likewise
        return "::: gpusort.export.exporting.export"
    entry = f"::: {module}.{name}"
    if isinstance(found, EnumType):
        rows = [f"| `{member.name}` | {member.value} |" for member in cast("type[Enum]", found)]
        return "\n".join([entry, "", "| member | |", "|---|---|", *rows])
    if inspect.isclass(found) and attrs.has(found) and (fields := list(_fields(found))):
        rows = [f"| `{field}` | `{default}` | {comment} |" for field, default, comment in fields]
        return "\n".join([entry, "", "| field | default | |", "|---|---|---|", *rows])
    return entry


def _fields(found: type) -> Iterator[tuple[str, str, str]]:
    """The fields of an attrs class, with their defaults and the comments above or behind them."""
    path = Path(inspect.getfile(found))
    lines = path.read_text().splitlines()
    body = next(node for node in ast.walk(ast.parse(path.read_text())) if _defines(node, found.__name__))
    assert isinstance(body, ast.ClassDef)
    known = attrs.fields_dict(found)
    for node in body.body:
        match node:
            case ast.AnnAssign(target=ast.Name(name)) if name in known and not name.startswith("_"):
                yield name, _default(known[name]), _comment(lines, node)
            case _:
                pass


def _defines(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == name


def _default(field: attrs.Attribute[object]) -> str:
    default: object = field.default
    if default is attrs.NOTHING:
        return "required"
    made_by: object = getattr(default, "factory", None)  # of an attrs.Factory
    return str(default) if made_by is None else f"{getattr(made_by, '__name__', made_by)}()"


def _comment(lines: list[str], node: ast.AnnAssign) -> str:
    behind = re.search(r"  # ([^#]+)$", lines[(node.end_lineno or node.lineno) - 1])
    if behind:
        return behind[1]
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("# "):
            break
        above.insert(0, line.strip()[2:])
    return " ".join(above)
