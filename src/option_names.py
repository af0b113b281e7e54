"""Error messages of the command line: they name its options, where the library names its own parameters."""

from __future__ import annotations

from collections.abc import Mapping

_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "sort": {
        "source": "FILE", "target": "--output", "by": "--by", "memory": "--memory", "scratch": "--scratch",
        "resume": "--resume", "dtype": "--dtype", "target_device": "--target",
    },
    "tune": {"target": "--target"},
    "export": {
        "operations": "OPERATION", "keys": "--keys", "values": "--values", "rows": "--rows", "k": "--k",
        "monoids": "--monoids", "schedules": "--schedules", "format": "--format", "arch": "--arch", "name": "--name",
        "lanes": "--subgroups",
    },
}  # fmt: skip


def naming_option(message: str, command: str) -> str:
    """The message with the parameter that it begins with replaced by the command's option."""
    parameter, colon, rest = message.partition(": ")
    option = _OPTIONS.get(command, {}).get(parameter)
    return message if option is None else f"{option}{colon}{rest}"
