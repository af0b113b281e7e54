// The page: it finds a GPU, and puts the rest together.
import { KERNELS } from "./data.js";
import { pairsOf, passesOf, statesOf } from "./network.js";
import { Bars, Network, chartOf, marked } from "./pictures.js";
import { ARRAYS, SIZES, measured } from "./throughput.js";

const at = (id) => document.getElementById(id);

// -- the GPU

/** A device and what its adapter is called, or words for a reader who has none. */
export async function found() {
  if (!navigator.gpu)
    return { missing: isSecureContext
      ? "Nothing here can be sorted without it. Chrome, Edge, Safari 26 and Firefox 141 or newer have it on most machines; " +
        "in Chrome, <code>chrome://gpu</code> says why it may be off."
      : "Browsers give it to pages by <code>https</code> and from <code>localhost</code> only." }; // prettier-ignore
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (!adapter) return { missing: "The browser has it, but no GPU or driver that it works with." };
  const device = await adapter.requestDevice();
  const { description, vendor, architecture } = adapter.info;
  return { device, name: description || [vendor, architecture].filter(Boolean).join(" ") || "a GPU without a name" };
}

function tellOf({ missing, name, device }) {
  at("adapter").hidden = Boolean(missing);
  at("missing").hidden = !missing;
  if (missing) {
    at("missing").innerHTML = `<strong>This browser has no WebGPU for this page.</strong> ${missing}`;
    return;
  }
  const told = document.createElement("b");
  told.textContent = name;
  at("adapter").replaceChildren("Adapter: ", told);
  device.addEventListener("uncapturederror", ({ error }) => (at("adapter").textContent = `WebGPU: ${error.message}`));
  device.lost.then(({ message }) => (at("adapter").textContent = `The GPU is lost: ${message} Load the page again.`));
}

// -- launch by launch

const PATTERNS = {
  random: () => Math.random(),
  reversed: (i, n) => 1 - i / n,
  nearly: (i, n) => (i + 4 * Math.random()) / (n + 4),
  few: () => (1 + Math.floor(4 * Math.random())) / 4,
};

/** The numbers that are sorted, what each launch made of them, and which of these is shown. */
class Player {
  async load(device) {
    this.stop();
    const n = at("count").valueAsNumber;
    this.descending = at("order").value === "down";
    const keys = Float32Array.from({ length: n }, (_, i) => PATTERNS[at("pattern").value](i, n));
    const asked = (this.asked = {});
    const states = device ? await statesOf(device, keys, this) : [keys];
    if (asked !== this.asked) return; // others were asked for meanwhile
    this.orders = [[...keys.keys()]];
    this.moves = [new Set()];
    passesOf(n).slice(0, states.length - 1).forEach((pass, i) => {
      const order = this.orders[i].slice();
      const exchanged = pairsOf(pass, n).filter(([lower]) => states[i][lower] !== states[i + 1][lower]);
      for (const [lower, upper] of exchanged) [order[lower], order[upper]] = [order[upper], order[lower]];
      this.orders.push(order);
      this.moves.push(new Set(exchanged.flat()));
    });
    this.states = states;
    this.bars = new Bars(at("bars"), keys);
    this.network = new Network(at("network"), n, (launch) => this.seek(launch));
    at("launch").max = states.length - 1;
    this.show(0);
  }

  seek(launch) {
    this.stop();
    this.show(launch);
  }

  show(launch) {
    const last = this.states.length - 1;
    this.launch = Math.max(0, Math.min(launch, last));
    const moved = this.moves[this.launch];
    this.bars.show(this.orders[this.launch], moved);
    this.network.show(this.launch, moved);
    at("launch").value = this.launch;
    at("launch").setAttribute("aria-valuetext", (at("state").textContent = this.told(last, moved.size / 2)));
    at("back").disabled = !this.launch;
    at("forward").disabled = this.launch === last;
    at("play").disabled = !last;
  }

  told(last, exchanged) {
    const n = at("count").valueAsNumber;
    if (!this.launch) return `${n} elements, ${passesOf(n).length} launches`;
    const { stage, pass, mask } = passesOf(n)[this.launch - 1];
    const how = pass ? `elements ${mask} apart` : `blocks of ${mask + 1}, mirrored`;
    const end = this.launch === last ? " · sorted" : "";
    const of = pairsOf({ mask }, n).length;
    return `Launch ${this.launch} of ${last} · stage ${stage + 1}, pass ${pass + 1}: ${how} · ${exchanged} of ${of} pairs exchanged${end}`;
  }

  toggle() {
    if (this.timer) return this.stop();
    const last = this.states.length - 1;
    if (this.launch === last) this.show(0);
    at("play").textContent = "Pause";
    at("state").ariaLive = "off"; // which would be read out faster than it can be spoken
    const step = () => {
      this.show(this.launch + 1);
      if (this.launch === last) this.stop();
    };
    this.timer = setInterval(step, Math.max(250, Math.min(700, 9000 / last)));
  }

  stop() {
    clearInterval(this.timer);
    this.timer = undefined;
    at("play").textContent = "Play";
    at("state").ariaLive = "polite";
  }
}

function playing(device) {
  const player = new Player();
  const load = () => player.load(device);
  at("count").addEventListener("input", () => {
    at("count-told").textContent = at("count").value;
    load();
  });
  for (const id of ["pattern", "order"]) at(id).addEventListener("change", load);
  at("again").addEventListener("click", load);
  at("play").addEventListener("click", () => player.toggle());
  at("back").addEventListener("click", () => player.seek(player.launch - 1));
  at("forward").addEventListener("click", () => player.seek(player.launch + 1));
  at("launch").addEventListener("input", () => player.seek(at("launch").valueAsNumber));
  return load();
}

// -- throughput

const told = (speed) => speed.toPrecision(3).replace(/e\+?.*/, "");

/** Measures size after size until one takes long, and shows what is there. */
export async function measureAll(device, type, sizes = SIZES, milliseconds = 200) {
  const rows = [];
  at("array-name").textContent = `${ARRAYS[type].name}.sort`;
  at("rows").replaceChildren();
  document.querySelector(".scroll").hidden = false;
  for (const n of sizes) {
    at("progress").textContent = `Sorting ${n.toLocaleString("en")} keys…`;
    const row = await measured(device, type, n, milliseconds);
    rows.push(row);
    const cells = [n.toLocaleString("en"), ...[row.gpu, row.copied, row.array].map(told), row.equal ? "equal" : "WRONG"];
    const line = document.createElement("tr");
    line.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    at("rows").append(line);
    at("chart").hidden = false;
    at("chart").replaceChildren(chartOf(rows, at("chart").clientWidth - 32));
    if (n / row.gpu > 1e6) break; // more than a second a sort
  }
  at("progress").textContent = "Done.";
  return rows;
}

function measuring(device) {
  at("type").append(...Object.keys(ARRAYS).map((type) => new Option(type, type)));
  at("measure").addEventListener("click", async () => {
    at("measure").disabled = true;
    try {
      await measureAll(device, at("type").value);
    } catch (error) {
      at("progress").textContent = String(error);
    }
    at("measure").disabled = false;
  });
}

// -- kernels

function showingKernels() {
  at("kernel").append(...KERNELS.map(({ name, type }, number) => new Option(`${name}, ${type}`, number)));
  const show = () => {
    const kernel = KERNELS[at("kernel").value];
    at("python").replaceChildren(...marked(kernel.python, "python"));
    at("wgsl").replaceChildren(...marked(kernel.wgsl, "wgsl"));
  };
  at("kernel").addEventListener("change", show);
  show();
}

/** Everything, ready: a device, if there is one. */
export const ready = (async () => {
  showingKernels();
  const gpu = await found();
  tellOf(gpu);
  for (const control of document.querySelectorAll("main button, #launch, #type")) control.disabled = !gpu.device;
  measuring(gpu.device);
  await playing(gpu.device);
  return gpu.device;
})();
