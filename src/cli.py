"""The command line: `python -m gpusort` and `gpusort`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from . import __version__
from .kernel.span import KernelError
from .machine import TargetInfo
from .sort_command import add_arguments as add_sort_arguments
from .sort_command import run as run_sort
from .targets.registry import FORMS, Unavailable, targets
from .terminal import Terminal, Tone
from .types.checks import number_in, numbers_in
from .types.errors import GpusortError, InvalidArgumentError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code. Expected errors are printed as one line, without a traceback."""
    try:
        options, unknown = command_parser().parse_known_args(arguments)
        if unknown:  # with the usage of the command that was given them
            options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return _run(options)
    except BrokenPipeError:  # of --help, for which Python's own parser says nothing from 3.11.3 on
        return 0
    except SystemExit as end:  # of --help too, whose text is not written yet
        if end.code or not (code := _run(argparse.Namespace(run=_nothing, command=None))):
            raise
        return code
    finally:
        for stream in (sys.stdout, sys.stderr):
            _give_up_unwritten(stream)


def _nothing(_: argparse.Namespace) -> int:
    return 0


def _run(options: argparse.Namespace) -> int:
    _take_closed_streams()
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        code = run(options)
        print(end="", flush=True)  # here, where it can still be told that it fails
        return code
    except BrokenPipeError:  # the reader closed the pipe
        return 0
    except (GpusortError, KernelError, OSError, EOFError) as error:
        with suppress(OSError):
            print(f"gpusort: {_naming_option(_message(error), options)}", file=sys.stderr)
        return 1


def _give_up_unwritten(stream: TextIO | None) -> None:
    """Python would try again at exit, and make a failure of its own of it. The stream is None if it was closed at
    start-up."""
    if stream is not None:
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# Where an option is not called as the library's parameter is.
_OPTIONS = {
    ("sort", "source"): "FILE", ("sort", "target"): "--output", ("sort", "target_device"): "--target",
    ("export", "operations"): "OPERATION", ("export", "lanes"): "--subgroups", ("plan", "x"): "--key, --shape",
}  # fmt: skip


def _message(error: Exception) -> str:
    """What an error says, without the number that the system has for it."""
    return str(error).removeprefix(f"[Errno {error.errno}] ") if isinstance(error, OSError) else str(error)


def _naming_option(message: str, options: argparse.Namespace) -> str:
    """An error message of the library, which names a parameter first, with the command's option in its place."""
    parameter, colon, rest = message.partition(": ")
    same = f"--{parameter}" if parameter in vars(options) else parameter
    return f"{_OPTIONS.get((options.command, parameter), same)}{colon}{rest}"


def _take_closed_streams() -> None:
    """Opens /dev/null for standard streams that the shell has closed; else the next opened file would become one."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def command_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gpusort", description="Sorts, reductions and scans on GPUs and CPUs.")
    parser.add_argument("--version", action="version", version=f"gpusort {__version__}")

    def without_command(_: argparse.Namespace) -> int:
        parser.print_help()
        return 2

    parser.set_defaults(run=without_command, parser=parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text)
        made.set_defaults(run=run, parser=made)
        return made

    command("demo", _demo, "sort on every target found and compare with NumPy")
    add_sort_arguments(command("sort", run_sort, "sort a file of any size: .npy, Parquet, Arrow, or raw"))
    command("targets", _targets, "list the targets, and why one is not available")
    tune = command("tune", _tune, "measure which sorts are fastest on this machine, and use them from now on")
    tune.add_argument("--target", help="one target (default: all that are available)")
    tune.add_argument("--forget", action="store_true", help="go back to the built-in choices")
    show = command("show", _show, "print the code that a target generates for a kernel")
    # Names are checked when they are used: the list of kernels takes time to make.
    text = "such as bitonic_step, or a unique prefix; module:attribute of your own schedule; without it, all are listed"
    show.add_argument("kernel", metavar="KERNEL", nargs="?", help=text)
    show.add_argument("--key", help="the dtype, such as u32 or f64 (default: f32)")
    show.add_argument("--target", default="ir", choices=tuple(FORMS), help="(default: %(default)s)")
    plan = command("plan", _plan, "print which kernels a call launches, on machines that need not be here")
    plan.add_argument("function", metavar="FUNCTION", help="such as sort, argsort, top_k, sum, cumsum, merge")
    plan.add_argument(
        "--key", default="f32", help="the dtype, or module:attribute of your own key (default: %(default)s)"
    )
    plan.add_argument("--shape", required=True, help="of the array, such as 1000000 or 1000,300")
    plan.add_argument("--axis", type=_int, help="of the array (default: as in Python, the last or all)")
    plan.add_argument("--stable", action="store_true", default=None, help="of a sort: equal floats keep their order")
    plan.add_argument("--k", type=_int, help="how many elements top_k selects (default: 10)")
    plan.add_argument("--on", default="cuda", help="cuda, vulkan, webgpu or cpu (default: %(default)s)")
    export = command("export", _export, "export operations to programs outside Python, such as a web page")
    export.add_argument("operation", metavar="OPERATION", nargs="+", help="such as sort, argsort, sum, cumsum, reduce")
    export.add_argument("--out", required=True, metavar="DIR", help="the folder to write to")
    text = "types, or module:attribute for your own (default: %(default)s)"
    export.add_argument("--keys", default="u32,f32", help=text)
    export.add_argument("--values", default="", help="types of the values of sorts, such as u32 (default: none)")
    export.add_argument("--rows", default="", help="lengths of independent rows, such as 1024, or any")
    export.add_argument("--k", default="", help="numbers of elements that top_k selects, such as 10,100")
    export.add_argument("--monoids", default="", help="module:attribute of your own, for reduce and scan")
    export.add_argument("--schedules", default="", help="module:attribute of functions of a length, for schedule")
    forms = ("js", "wgsl", "spirv", "msl", "hlsl", "ptx", "cubin")
    export.add_argument("--format", default="js", choices=forms, help="(default: %(default)s)")
    export.add_argument("--arch", default="", help="architecture for ptx and cubin, such as sm_90 (default: sm_80)")
    export.add_argument("--name", default="gpusort", help="the name of the files (default: %(default)s)")
    text = "use subgroups of at least LANES lanes"
    export.add_argument("--subgroups", type=_int, default=0, metavar="LANES", help=text)
    export.add_argument("--unrolled", action="store_true", help="unroll loops over registers")
    return parser


def _int(text: str) -> int:
    """An option's int, of ASCII digits; argparse says which option has none."""
    if number_in(text.removeprefix("-")) is None:
        raise argparse.ArgumentTypeError(f"expected an int, found {text!r}")
    return int(text)


def _find_own_modules() -> None:
    """Imports the user's modules from the current folder, as `python -m` can."""
    sys.path.insert(0, "")


def _export(options: argparse.Namespace) -> int:
    from .export.exporting import export

    def parts(text: str) -> list[str]:
        return [part for part in text.split(",") if part]

    _find_own_modules()

    def numbers(option: str, text: str, example: str) -> list[int]:
        found = numbers_in(parts(text))
        if found is None:
            raise InvalidArgumentError(f"{option}: expected {example}, found {text!r}")
        return found

    rows: list[int | str] = []
    for part in parts(options.rows):
        rows += [part] if part == "any" else numbers("--rows", part, "lengths such as 1024, or any")

    written = export(
        options.operation, options.out, keys=parts(options.keys), values=parts(options.values),
        rows=rows, k=numbers("--k", options.k, "numbers such as 10"),
        monoids=parts(options.monoids), schedules=parts(options.schedules), format=options.format, name=options.name,
        lanes=options.subgroups, unrolled=options.unrolled, arch=options.arch,
    )  # fmt: skip
    terminal = Terminal()
    for file in written:
        terminal.line(f"{file}: {file.stat().st_size:,} bytes")
    return 0


def _demo(_: argparse.Namespace) -> int:
    from .demo import run_demo

    return 0 if run_demo(Terminal()) else 1


def _tune(options: argparse.Namespace) -> int:
    from .tuning import forget_tuning, tune

    if options.forget:
        forget_tuning(options.target)
    else:
        tune(options.target, report=Terminal().line)
    return 0


def _targets(_: argparse.Namespace) -> int:
    terminal = Terminal()
    for state in targets():
        name = terminal.toned(state.name, Tone.TITLE)
        match state:
            case Unavailable():
                reason = state.reason.removeprefix(f"target {state.name!r}: ")
                terminal.line(f"{name}: not available: {terminal.toned(reason, Tone.QUIET)}")
            case TargetInfo():
                terminal.line(f"{name}: {state.adapter}")
                for label, text in _particulars(state):
                    terminal.line(f"  {label:18}{text}")
    return 0


def _particulars(info: TargetInfo) -> list[tuple[str, str]]:
    limits = info.limits
    capabilities = ", ".join(sorted(capability.value for capability in info.capabilities))
    return [
        ("driver", info.driver),
        ("workgroup", f"{limits.group_size:,} invocations, {limits.workgroup_bytes:,} bytes of memory"),
        ("launch", f"{limits.groups:,} workgroups, {limits.storage_buffers} storage buffers"),
        ("storage buffer", f"{limits.storage_bytes:,} bytes"),
        ("smallest subgroup", f"{limits.subgroup_size} invocations"),
        ("capabilities", capabilities or "the portable core"),
    ]


def _show(options: argparse.Namespace) -> int:
    from .show import kernel_names, own_text, text_of

    kernel, key, terminal = options.kernel, options.key, Terminal()
    if kernel is not None and ":" in kernel:
        if key is not None:
            raise InvalidArgumentError(f"--key: expected none for a schedule of your own, found {key!r}")
        _find_own_modules()
        terminal.line(own_text(kernel, options.target).rstrip("\n"))
        return 0
    names = kernel_names()
    if kernel is None:
        for name in names:
            terminal.line(name)
        return 0
    fitting = [name for name in names if name == kernel] or [name for name in names if name.startswith(kernel)]
    if len(fitting) != 1:
        if fitting:
            raise InvalidArgumentError(f"KERNEL: {kernel!r} may be {', '.join(fitting)}")
        raise InvalidArgumentError(f"KERNEL: there is no kernel {kernel!r}; `gpusort show` lists them")
    terminal.line(text_of(fitting[0], key or "f32", options.target).rstrip("\n"))
    return 0


def _plan(options: argparse.Namespace) -> int:
    from .show import launches_of, schedules_of, temporary_bytes, works_of

    _find_own_modules()
    works, terminal = works_of(options), Terminal()
    schedules = schedules_of(works)
    for line in launches_of(schedules):
        terminal.line(line)
    terminal.line(f"temporary: {temporary_bytes(works, schedules):,} bytes")
    return 0
