"""gpusort in a page: in Pyodide in headless Chromium, on the browser's WebGPU, without Numba and wgpu."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusort.targets.wgsl import browser as browser_library
from tests.chromium import Browser, Page
from tests.covering import is_whole
from tests.documents import ROOT, blocks
from tests.exported import WEB
from tests.packed import built_wheel
from tests.pyodide_cases import Array, Case, received, sent
from tests.reference import assert_same_bits, sample, sorted_by_numpy, whole_numbers

DOCUMENT = ROOT / "docs" / "howto" / "pyodide.md"
_LONG = 20_001
_PAGE = """<!doctype html><body></body><script>
addEventListener("error", ({ message }) => (globalThis.failure = message));
addEventListener("unhandledrejection", ({ reason }) => (globalThis.failure = String(reason)));
</script><script type=module>
%s
globalThis.pyodide = pyodide;
</script>"""
_READY = """
while (!globalThis.pyodide && !globalThis.failure) await new Promise((done) => setTimeout(done, 20));
if (globalThis.failure) throw new Error(failure);
"""


def _pyodide() -> Path:
    """The distribution that npm and .ci/pyodide have brought."""
    folder = WEB / "node_modules" / "pyodide"
    for name, how in (("pyodide.asm.wasm", ".ci/web PYTHON"), ("numpy-*.whl", ".ci/pyodide PYTHON")):
        if not [*folder.glob(name)]:
            pytest.skip(f"tests/web/node_modules/pyodide has no {name}: {how} installs it")
    return folder


class Python:
    """Pyodide in a page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def awaits(self, code: str) -> Any:
        """What code gives that may wait, by way of JSON."""
        return json.loads(self.page.run(f"return await pyodide.runPythonAsync({json.dumps(code)})"))

    def answers(self, *cases: Case) -> list[Any]:
        asked = json.dumps(json.dumps(cases))
        return [
            answer if isinstance(answer, str) else [received(part) for part in answer]
            for answer in self.awaits(f"await pyodide_cases.answers({asked})")
        ]


@pytest.fixture(scope="module")
def python(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    """The page of the document, which has sorted once when it is there."""
    source, folder = _pyodide(), tmp_path_factory.mktemp("page")
    (folder / "pyodide").mkdir()
    for file in source.iterdir():
        (folder / "pyodide" / file.name).symlink_to(file)
    _list_attrs(folder / "pyodide")
    wheel = built_wheel(tmp_path_factory)
    (folder / wheel.name).symlink_to(wheel)
    (folder / "index.html").write_text(_PAGE % blocks(DOCUMENT, "js")[0])
    opened = Page(browser, folder)
    opened.run(_READY)
    cases = (ROOT / "tests" / "pyodide_cases.py").read_text()
    opened.run(
        f"pyodide.FS.writeFile('pyodide_cases.py', {json.dumps(cases)}); pyodide.runPython('import pyodide_cases')"
    )
    yield Python(opened)
    opened.close()


def _list_attrs(folder: Path) -> None:
    """Pyodide's list of packages, with attrs as pip has it: Pyodide's own build of it is not here."""
    (wheel,) = folder.glob("attrs-*.whl")
    listed = json.loads((folder / "pyodide-lock.json").read_text())
    checksum = hashlib.sha256(wheel.read_bytes()).hexdigest()
    listed["packages"]["attrs"].update(file_name=wheel.name, depends=[], sha256=checksum)
    (folder / "pyodide-lock.json").unlink()
    (folder / "pyodide-lock.json").write_text(json.dumps(listed))


def _case(call: str, *arrays: Array, way: str = "waits", **settings: object) -> Case:
    return {"call": call, "arrays": [sent(array) for array in arrays], "settings": settings, "way": way}


def test_the_document_shows_what_it_says(python: Python) -> None:
    assert python.page.run("return document.body.lastChild.textContent") == "[-2. -0.  1.  3. nan]"


def test_the_targets_of_a_page_are_the_gpu_and_the_simulator(python: Python) -> None:
    found = python.awaits("""
import json, sys, gpusort
json.dumps([{state.name: str(getattr(state, "reason", state.driver if hasattr(state, "driver") else "")) for state in
gpusort.targets()}, [name for name in ("numba", "wgpu") if name in sys.modules]])""")
    states, imported = found
    assert imported == []
    assert states["wgsl"].startswith("WebGPU")
    assert "NumPy" in states["simulator"]
    assert "needs llvmlite, which no page has" in states["cpu"]
    assert "cupy" in states["cuda"]


_SORTS = [("f4", (0, 1, 2, 255, 256, 257)), ("u1", (257,)), ("i8", (257,)), *([("f8", (257,))] if is_whole() else [])]


@pytest.mark.parametrize(("dtype", "lengths"), _SORTS)
def test_sorts_have_numpys_bits(python: Python, dtype: str, lengths: Sequence[int]) -> None:
    """Where a call waits, and where arrays stay on the device. Elements are one word, less, and two. Floats, which tie
    with other bits, are of one dtype but for --whole: SwiftShader compiles for seconds what puts these back."""
    arrays = [sample(dtype, length, seed=3) for length in lengths]
    cases = [_case("sort", x, stable=True) for x in arrays]
    cases += [_case("sort", arrays[-1], stable=True, descending=True, way="stays")]
    expected = [*map(sorted_by_numpy, arrays), sorted_by_numpy(arrays[-1], descending=True)]
    for (found,), wanted in zip(python.answers(*cases), expected, strict=True):
        assert_same_bits(found, wanted)


def test_long_arrays_are_sorted_by_digits(python: Python) -> None:
    x = sample("u4", _LONG)
    ((found,),) = python.answers(_case("sort", x))  # where it stays it takes the same kernels, compiled once more
    assert_same_bits(found, np.sort(x))


def test_other_functions_equal_numpys(python: Python) -> None:
    """Counts and sums of integers have 64 bits, which NumPy's have not in WebAssembly. Along short rows, whose kernels
    SwiftShader compiles soonest: which kernels are right is for the tests of other targets."""
    x, keys, values = whole_numbers("i2", (30, 20)), whole_numbers("i4", 300), np.arange(300, dtype=np.uint32)
    order = np.argsort(keys, kind="stable")
    expected: list[tuple[Case, list[Array]]] = [
        (_case("sum", x, axis=1), [x.sum(axis=1)]),
        (_case("sum", x[:0], axis=0), [x[:0].sum(axis=0)]),
        (_case("cumsum", x, axis=1), [x.cumsum(axis=1)]),
        (_case("argmin", x, axis=1, way="stays"), [x.argmin(axis=1)]),
        (_case("sort_by_key", keys, values), [keys[order], values[order]]),
        (_case("top_k", values, k=3), [values[:-4:-1], np.array([299, 298, 297])]),
    ]
    if is_whole():
        long, floats = whole_numbers("i2", (30, 257)), whole_numbers("f4", 300)
        order = np.argsort(floats, kind="stable")
        expected += [
            (_case("sum", long, axis=0), [long.sum(axis=0)]),
            (_case("cumsum", long, axis=1), [long.cumsum(axis=1)]),
            (_case("argmin", long, axis=0, way="stays"), [long.argmin(axis=0)]),
            (_case("sort_by_key", floats, values), [floats[order], values[order]]),
        ]
    for found, (case, wanted) in zip(python.answers(*[case for case, _ in expected]), expected, strict=True):
        assert not isinstance(found, str), (case["call"], found)
        for mine, numpys in zip(found, wanted, strict=True):
            assert_same_bits(mine, numpys)


def test_the_simulator_sorts_and_finds_races(python: Python) -> None:
    x = sample("f4", 300)
    ((found,),) = python.answers(_case("sort", x, stable=True, target="simulator"))
    assert_same_bits(found, sorted_by_numpy(x))
    race = (ROOT / "examples" / "race.py").read_text()
    report = python.awaits(f"""
import json, pathlib
pathlib.Path("race.py").write_text({race!r})
import race
json.dumps(race.report())""")
    assert report.startswith("DataRaceError: ")


def test_the_page_goes_on_while_python_waits(python: Python) -> None:
    """Timers run between the beginning of a warm call and its end."""
    ticks = python.page.run("""
await pyodide.runPythonAsync("import numpy, gpusort; x = numpy.arange(20_001, dtype='u4')[::-1]; gpusort.sort(x)");
let ticks = 0;
const timer = setInterval(() => ticks++, 1);
await pyodide.runPythonAsync("found = gpusort.sort(x)");
clearInterval(timer);
return ticks;""")
    assert ticks > 2
    assert python.awaits("import json; json.dumps(bool((found == numpy.sort(x)).all()))")


def test_calls_may_come_while_another_waits(python: Python) -> None:
    """As from two buttons of a page."""
    x = [sample("f4", 257, seed=seed) for seed in (1, 2)]
    asked = [json.dumps(json.dumps([_case("sort", one, stable=True)])) for one in x]
    runs = ", ".join(f"pyodide.runPythonAsync({json.dumps(f'await pyodide_cases.answers({one})')})" for one in asked)
    for answer, given in zip(python.page.run(f"return await Promise.all([{runs}]);"), x, strict=True):
        assert_same_bits(received(json.loads(answer)[0][0]), sorted_by_numpy(given))


# -- what is refused --------------------------------------------------------------------------------------


def test_what_cannot_run_in_a_page_says_why(python: Python) -> None:
    x = sample("f4", 300)
    found = python.answers(
        _case("sort", x, target="cpu"), _case("sort", x, target="python"), _case("sum", x.astype("f8"), target="wgsl")
    )
    assert found[0].startswith("TargetUnavailableError: target 'cpu' needs llvmlite, which no page has")
    assert re.match(r"CapabilityError: target 'python' runs invocations .* use target='simulator'", found[1])
    message = (
        r"CapabilityError: x: Sum of float64 needs 64-bit float arithmetic, .* 'wgsl'.* use target='simulator', or"
    )
    assert re.match(message, found[2])


_WITHOUT_WAITING = """
import json, numpy, gpusort
from gpusort.targets import registry
def error(opened):  # plans are kept with their targets, so each sorts a dtype of its own
    kept = dict(registry._opened)
    if not opened: registry._opened.clear()
    try: gpusort.sort(numpy.arange(9).astype(DTYPE if opened else NEW))
    except gpusort.GpusortError as found: return f"{type(found).__name__}: {found}"
    finally: registry._opened.update(kept)
json.dumps([error(True), error(False)])
"""


def test_where_python_cannot_wait_a_call_says_what_to_await(python: Python) -> None:
    """Entered by runPython, as by any code where the browser has no Promise Integration."""
    code = f"DTYPE, NEW = 'f4', 'i2'\n{_WITHOUT_WAITING}"
    found = json.loads(python.page.run(f"return pyodide.runPython({json.dumps(code)})"))
    assert [text.partition(":")[0] for text in found] == ["CapabilityError", "TargetUnavailableError"]
    for text in found:
        assert "`await open_device()`, `await x.fetch()`" in text


def test_nothing_waits_where_all_is_awaited(python: Python) -> None:
    """As in a browser without Promise Integration."""
    assert python.awaits("""
import json, numpy, gpusort
import pyodide.ffi
def run_sync(answer): raise RuntimeError("cannot wait")
kept = pyodide.ffi.can_run_sync, pyodide.ffi.run_sync
pyodide.ffi.can_run_sync, pyodide.ffi.run_sync = (lambda: False), run_sync
try:
    device = await gpusort.webgpu.open_device()
    x = gpusort.webgpu.asarray(numpy.arange(300, dtype="f4")[::-1], device)
    found = await gpusort.sort(x).fetch()
finally:
    pyodide.ffi.can_run_sync, pyodide.ffi.run_sync = kept
json.dumps(found.tolist() == list(range(300)))""")


def _counting_devices(body: str) -> str:
    """A function's body, with `count` the number of devices that were asked for."""
    return f"""
const asked = GPUAdapter.prototype.requestDevice;
let count = 0;
GPUAdapter.prototype.requestDevice = function (...given) {{ count += 1; return asked.apply(this, given); }};
try {{{body}
}} finally {{
  GPUAdapter.prototype.requestDevice = asked;
}}"""


def test_calls_that_wait_side_by_side_share_one_device(python: Python) -> None:
    """Where none is open yet, and for those who await it. However often garbage would be collected meanwhile."""
    python.page.run("""pyodide.runPython(`
import gc, json, numpy, gpusort
kept = gc.get_threshold()
gc.set_threshold(50)
from gpusort.api.call import forget_plans
from gpusort.targets import registry
def is_sorted(length):
    x = numpy.arange(length, dtype="u4")[::-1]
    return json.dumps((gpusort.sort(x) == x[::-1]).all().item())
registry._opened.pop("wgsl")
forget_plans()`)""")
    calls = json.dumps([f"is_sorted({length})" for length in (300, 302, 301)])
    found = python.page.run(
        _counting_devices(f"""
  const run = (code) => pyodide.runPythonAsync(code);
  const opening = await Promise.all({calls}.map(run));
  const opened = count;
  const same = await run(`
import asyncio
devices = await asyncio.gather(*[gpusort.webgpu.open_device() for _ in range(3)])
x = gpusort.webgpu.asarray(numpy.arange(9)[::-1], devices[2])
json.dumps([len({{id(device) for device in devices}}), (await gpusort.sort(x).fetch()).tolist()])`);
  return [...opening, opened, count - opened, same];""")
    )
    assert found == ["true"] * 3 + [1, 1, json.dumps([1, list(range(9))])]
    assert python.awaits("""
import asyncio
await asyncio.sleep(0.02)
gc.set_threshold(*kept)
json.dumps(gc.isenabled())""")


def test_calls_wait_for_the_one_that_uses_the_device(python: Python) -> None:
    """A call suspends while its kernels are compiled and while it waits for results; others begin meanwhile."""
    python.page.run("""pyodide.runPython(`
import json, numpy, gpusort
def is_sorted(dtype):
    x = numpy.arange(300, dtype=dtype)[::-1]
    return json.dumps((gpusort.sort(x, stable=True) == x[::-1]).all().item())`)""")
    calls = json.dumps([f"is_sorted({dtype!r})" for dtype in ("u4", "i4", "u4", "u2")])
    found = python.page.run(
        _counting_devices(f"""
  await pyodide.runPythonAsync("is_sorted('i1')");
  const before = count;
  const sorted = await Promise.all({calls}.map((code) => pyodide.runPythonAsync(code)));
  return [...sorted, count - before];""")
    )
    assert found == ["true"] * 4 + [0]


def test_a_page_without_webgpu_says_so(python: Python) -> None:
    code = f"DTYPE, NEW = 'f4', 'i4'\n{_WITHOUT_WAITING}"
    found = python.page.run(f"""
Object.defineProperty(navigator, "gpu", {{ value: undefined, configurable: true }});
try {{
  return await pyodide.runPythonAsync({json.dumps(code)});
}} finally {{
  delete navigator.gpu;
}}""")
    assert (
        json.loads(found)[1]
        == "TargetUnavailableError: target 'wgsl' finds no adapter: this browser gives the page no WebGPU"
    )


def test_a_lost_device_is_told_of(python: Python) -> None:
    found = python.awaits("""
import asyncio, json, numpy, gpusort
device = await gpusort.webgpu.open_device()
x = gpusort.webgpu.asarray(numpy.arange(9), device)
device.destroy()
await asyncio.sleep(0.02)
found = []
for call in (lambda: gpusort.sort(x).to_numpy(), lambda: gpusort.webgpu.asarray(numpy.arange(9), device).to_numpy()):
    try: call()
    except Exception as error: found.append(f"{type(error).__name__}: {error}")
json.dumps(found)""")
    assert found[0].startswith("DeviceLostError: ")


# -- the library ------------------------------------------------------------------------------------------


def test_a_pages_own_buffers_are_taken(python: Python) -> None:
    """As the document says."""
    python.page.run("""
const adapter = await navigator.gpu.requestAdapter(), device = await adapter.requestDevice();
const depths = device.createBuffer({ size: 4 * 1000, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
device.queue.writeBuffer(depths, 0, Float32Array.from({ length: 1000 }, (_, i) => (i * 7919) % 1000));
globalThis.page = { device, depths, draw: (buffer) => (globalThis.drawn = buffer) };""")
    shown = blocks(DOCUMENT, "python")[-1]
    found = python.awaits(f"import json, numpy as np\n{shown}\njson.dumps(order.to_numpy().tolist())")
    depths = np.arange(1000) * 7919 % 1000
    assert found == np.argsort(-depths, kind="stable").tolist()
    assert python.page.run("return drawn instanceof GPUBuffer")


def test_what_the_browser_refuses_is_raised(python: Python) -> None:
    """Of a kernel at once, with the line; of commands by what waits next."""
    found = python.awaits("""
import json, numpy, gpusort
from gpusort.targets.wgsl.browser import GPUError
device = await gpusort.webgpu.open_device()
layout = device.create_pipeline_layout(bind_group_layouts=[])
found = []
def wrong_kernel():
    module = device.create_shader_module(code="@compute @workgroup_size(64)\\nfn main() { let x: u32 = 1.5; }")
    device.create_compute_pipeline(layout=layout, compute={"module": module})
def wrong_copy():
    buffer = device.create_buffer(size=16, usage=4)
    encoder = device.create_command_encoder()
    encoder.copy_buffer_to_buffer(buffer, 0, buffer, 8, 4096)
    device.queue.submit([encoder.finish()])
    gpusort.webgpu.asarray(numpy.arange(4), device).to_numpy()
for call in (wrong_kernel, wrong_copy, lambda: gpusort.webgpu.asarray(numpy.arange(4), device).to_numpy()):
    try: found.append(call().tolist())
    except (GPUError, gpusort.GpusortError) as error: found.append(f"{type(error).__name__}: {error}")
json.dumps(found)""")
    assert found[0].startswith("GPUValidationError: :2:")
    assert re.match("GpusortError: reading a buffer: wgpu refuses: .*(source|same)", found[1], re.IGNORECASE)
    assert found[2] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "name", ["GPUDevice", "GPUBuffer", "GPUQueue", "GPUCommandEncoder", "GPUComputePassEncoder", "GPUAdapter", "GPU"]
)
def test_the_browsers_library_has_wgpus_names(name: str) -> None:
    """So the target speaks to both alike: what it can be asked has the same name and the same arguments there."""
    wgpu = pytest.importorskip("wgpu")
    ours, theirs = getattr(browser_library, name), getattr(wgpu, name)
    members: list[str] = [*vars(ours)]
    own = {member for member in members if not member.startswith("_") and not member.endswith("_async")}
    for method in own:
        wanted = [*inspect.signature(getattr(theirs, method)).parameters]
        taken = inspect.signature(getattr(ours, method)).parameters.values()  # all that is named may be passed on
        assert [one.name for one in taken if one.kind is not one.VAR_KEYWORD and one.name not in wanted] == []
