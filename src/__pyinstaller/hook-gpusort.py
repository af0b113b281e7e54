"""PyInstaller's hook: modules are imported where they are first needed, and kernels are read from their source."""

import pkgutil
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
_OF_OTHERS = ("gpusort.dask", "gpusort.__pyinstaller")  # dask is imported by a program that uses it

hiddenimports = [
    module.name
    for module in pkgutil.walk_packages([str(_PACKAGE)], "gpusort.")
    if not module.name.startswith(_OF_OTHERS)
]
datas = [
    (str(file), str(Path("gpusort") / file.parent.relative_to(_PACKAGE)))
    for file in _PACKAGE.rglob("*")
    if file.suffix in (".zip", ".js", ".mjs", ".ts")
]
module_collection_mode = {"gpusort": "pyz+py"}
