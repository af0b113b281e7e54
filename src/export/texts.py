"""An export as plain texts: a file a kernel, and a JSON document of all that a program needs to run them."""

from __future__ import annotations

import json

from .exported import Exported, plain
from .plans import Plan


def texts_of(exported: Exported, name: str) -> dict[str, str]:
    """Files by name."""
    kernels = exported.kernels.all
    files = [f"{kernel.name}_{number}.wgsl" for number, kernel in enumerate(kernels)]
    document = {
        "about": "terms are numbers, 'n', 'r' for how many rows there are, or [operator, term, term] with '/' rounded "
        "down and '^' rounded up; "
        "the first two parameters are a launch's workgroups, and how many of them are in a row of the dispatch",
        "kernels": [
            {
                "file": file,
                "entry": kernel.name,
                "workgroup_size": kernel.group_size,
                "workgroup_bytes": kernel.workgroup_bytes,
                "subgroups": kernel.uses_subgroups,
                "bindings": ["uniform", *kernel.bindings],
                "parameters": [
                    {"name": field, "type": type, "offset": 4 * place}
                    for place, (field, type) in enumerate(kernel.parameters)
                ],
            }
            for file, kernel in zip(files, kernels, strict=True)
        ],
        "schedules": {
            f"{schedule.variant.name}{order}": [_plan(plan) for plan in plans]
            for schedule in exported.schedules
            for order, plans in (("", schedule.plans), (" descending", schedule.descending))
            if plans
        },
    }
    texts = {file: kernel.text for file, kernel in zip(files, kernels, strict=True)}
    return {**texts, f"{name}.json": json.dumps(document, indent=1) + "\n"}


def _plan(plan: Plan) -> dict[str, object]:
    return {
        "first": plan.first,
        "last": plan.last,
        "buffers": [
            {"name": buffer.name, "role": buffer.role.value, "bytes": plain(buffer.bytes)} for buffer in plan.buffers
        ],
        "launches": [
            {
                "kernel": launch.kernel,
                "buffers": [plan.buffers[number].name for number in launch.buffers],
                "groups": plain(launch.groups),
                "parameters": [plain(word) for word in launch.words],
            }
            for launch in plan.launches
        ],
    }
