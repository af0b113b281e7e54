// The driver: runs any schedule of the data above. Numbers are terms: "n" (the length), "r" (the number of rows), a number,
// [operator, term, term], or ["?", term, term] for the ascending and the descending order. They are evaluated for `given`:
// n, r and descending.

const OPERATORS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => Math.floor(a / b),
  "^": (a, b) => Math.ceil(a / b),
};
function valueAt(term, given) {
  if (!Array.isArray(term)) return given[term] ?? term;
  const [operator, first, second] = term;
  if (operator === "?") return valueAt(given.descending ? second : first, given);
  return OPERATORS[operator](valueAt(first, given), valueAt(second, given));
}
const padded = (bytes) => Math.max(4, Math.ceil(bytes / 4) * 4);

const STORAGE = 0x80 | 0x08 | 0x04; // STORAGE, COPY_DST, COPY_SRC
const IN_ROW = 65535; // workgroups along one dimension of a dispatch
const STEP = 256; // bytes between the parameters of two launches
const compiled = new WeakMap(); // by device: promises of pipelines, by number of the kernel

function kernelOf(device, number) {
  if (!compiled.has(device)) compiled.set(device, new Map());
  const known = compiled.get(device);
  if (!known.has(number)) {
    const made = compile(device, KERNELS[number]);
    made.catch(() => known.delete(number));
    known.set(number, made);
  }
  return known.get(number);
}

/** A kernel's text: numbers of lines, or [the first, how many]. */
const textOf = (lines) => lines.flatMap((at) => (at.length ? LINES.slice(at[0], at[0] + at[1]) : LINES[at])).join("\n");

async function compile(device, { name, bindings, lanes, lines }) {
  const least = device.adapterInfo?.subgroupMinSize ?? 0;
  if (lanes && !device.features.has("subgroups"))
    throw new Error(`${name}: expected a device with the feature "subgroups"; export without them for any device`);
  if (lanes && least && least < lanes)
    throw new Error(`${name}: expected subgroups of at least ${lanes} lanes, this adapter has some of ${least}`);
  const types = ["uniform", ...Array.from(bindings, (kind) => (kind === "w" ? "storage" : "read-only-storage"))];
  const entries = types.map((type, binding) => ({ binding, visibility: 4, buffer: { type } }));
  const layout = device.createBindGroupLayout({ entries });
  const module = device.createShaderModule({ label: name, code: textOf(lines) });
  const pipelineLayout = device.createPipelineLayout({ bindGroupLayouts: [layout] });
  const pipeline = await device.createComputePipelineAsync({ label: name, layout: pipelineLayout, compute: { module } });
  return { layout, pipeline };
}

/** A binding of what the caller gave: a GPUBuffer, or a part of one; all of it, of typed arrays. */
function bindingOf(given, bytes, name, isAll) {
  const { buffer, offset = 0, size = buffer.size - offset } = given.buffer ? given : { buffer: given };
  if (offset % 4 || !(bytes <= size) || (isAll && bytes < size))
    throw new RangeError(`${name}: expected ${bytes} bytes at an offset of whole words, found ${size} at ${offset}`);
  return { buffer, offset, size: bytes };
}

export class Plan {
  constructor(device, name, given, plan, names, kernels) {
    Object.assign(this, { device, name, plan, names });
    this.sizes = plan.buffers.map(([, , bytes]) => valueAt(bytes, given));
    this.own = [];
    this.launches = [];
    const most = device.limits.maxStorageBufferBindingSize;
    const largest = Math.max(0, ...this.sizes);
    if (largest > most) throw new RangeError(`${name}: n = ${given.n} takes a buffer of ${largest} bytes, at most ${most} here`);
    const uniforms = plan.launches.length * STEP;
    if (!uniforms) return;
    this.parameters = device.createBuffer({ label: name, size: uniforms, usage: 0x40, mappedAtCreation: true });
    const words = new Uint32Array(this.parameters.getMappedRange());
    this.launches = plan.launches.map((place, i) => {
      const [, buffers, groups, values] = LAUNCHES[place];
      const count = valueAt(groups, given);
      const rows = Math.ceil(count / IN_ROW);
      const columns = Math.ceil(count / rows);
      words.set([count, columns, ...values.map((term) => valueAt(term, given))], (i * STEP) / 4);
      return { kernel: kernels[i], buffers, columns, rows, bytes: 4 * (2 + values.length) };
    });
    this.parameters.unmap();
  }

  encode(encoder, given, afterEach) {
    const [bound, before, after] = this.bind(given);
    for (const [from, to] of before) copy(encoder, from, to);
    let pass;
    const endPass = () => {
      pass?.end();
      pass = undefined;
    };
    this.launches.forEach(({ kernel, buffers, columns, rows, bytes }, i) => {
      const uniform = { buffer: this.parameters, offset: i * STEP, size: bytes };
      const resources = [uniform, ...buffers.map((number) => bound[number])];
      const entries = resources.map((resource, binding) => ({ binding, resource }));
      pass ??= encoder.beginComputePass({ label: this.name });
      pass.setPipeline(kernel.pipeline);
      pass.setBindGroup(0, this.device.createBindGroup({ layout: kernel.layout, entries }));
      pass.dispatchWorkgroups(columns, rows);
      if (!afterEach) return;
      endPass();
      afterEach(encoder, i);
    });
    endPass();
    for (const [from, to] of after) copy(encoder, from, to);
  }

  /** What each memory is bound to, and which copies come before the launches and after them. */
  bind(given) {
    const bound = [], before = [], after = [];
    const align = this.device.limits.minStorageBufferOffsetAlignment;
    const takes = [...new Set(Object.values(this.names).flat())];
    for (const [argument, one] of Object.entries(given))
      if (one && !takes.includes(argument)) throw new TypeError(`${this.name} takes ${takes.join(", ")}, found ${argument}`);
    const buffers = Object.values(given).map((one) => one && (one.buffer ?? one));
    this.plan.buffers.forEach(([name, role], i) => {
      const [argument, instead] = this.names[name] ?? [];
      const bytes = padded(this.sizes[i]);
      const scratch = () => {
        this.own[i] ??= this.device.createBuffer({ size: bytes, usage: STORAGE });
        return { buffer: this.own[i], size: bytes };
      };
      if (role === "scratch") return (bound[i] = scratch());
      const at = given[argument] ?? given[instead];
      if (!at) throw new TypeError(`${this.name}: expected a buffer as ${argument}`);
      const there = bindingOf(at, bytes, argument, this.takesAll);
      // WebGPU binds at aligned offsets only, and no buffer both read-only and writable.
      const isShared = role !== "input" && (!given[argument] || buffers.filter((one) => one === there.buffer).length > 1);
      if (there.offset % align === 0 && !isShared) return (bound[i] = there);
      bound[i] = scratch();
      // Copies are of whole words, of which the last may be a neighbour's too.
      if (role !== "output" || this.sizes[i] % 4) before.push([there, bound[i]]);
      if (role !== "input") after.push([bound[i], there]);
    });
    return [bound, before, after];
  }

  destroy() {
    this.parameters?.destroy();
    for (const buffer of this.own) buffer?.destroy();
  }
}

function copy(encoder, from, to) {
  encoder.copyBufferToBuffer(from.buffer, from.offset ?? 0, to.buffer, to.offset ?? 0, from.size);
}

/** Makes a schedule ready; `row` is the length of rows where n is their number. */
async function prepared(device, name, n, descending, row) {
  const exact = row ? `${name} rows ${row}` : name;
  const isAny = row && !SCHEDULES[exact] && SCHEDULES[`${name} rows any`];
  const found = isAny ? `${name} rows any` : exact;
  if (!SCHEDULES[found])
    throw new TypeError(`${found} is not in this module, which has ${Object.keys(SCHEDULES).join(", ")}`);
  if (row && !Number.isInteger(n)) throw new RangeError(`${found}: expected whole rows of ${row}, found ${n}`);
  const { plans, names, kernels: numbers } = SCHEDULES[found];
  const given = isAny ? { n: n && row, r: n, descending } : { n, descending };
  const plan = plans.find(({ first, last }) => first <= given.n && given.n <= last);
  if (!plan || !Number.isInteger(given.n))
    throw new RangeError(`${found}: expected n from ${plans[0].first} to ${plans.at(-1).last}, found ${given.n}`);
  const kernels = await Promise.all(plan.launches.map((place) => kernelOf(device, numbers[LAUNCHES[place][0]])));
  return new Plan(device, found, given, plan, names, kernels);
}

async function run(device, name, n, descending, given, row, takesAll = false) {
  const plan = Object.assign(await prepared(device, name, n, descending, row), { takesAll });
  try {
    const encoder = device.createCommandEncoder({ label: name });
    plan.encode(encoder, given);
    device.queue.submit([encoder.finish()]);
  } finally {
    plan.destroy();
  }
}

function typeOf(array) {
  const found = Object.keys(TYPES).find((name) => TYPES[name] && array instanceof TYPES[name]);
  if (!found)
    throw new TypeError(`expected an array of ${Object.keys(TYPES).join(" or ")}, found ${array?.constructor?.name}`);
  return found;
}

/** Runs on typed arrays: copies them to the device, and the outputs named back. */
async function runOnArrays(device, name, n, descending, inputs, outputs, row) {
  const given = {};
  const bytesOf = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  const bufferOf = (array, usage, mappedAtCreation = false) =>
    device.createBuffer({ size: padded(array.byteLength), usage, mappedAtCreation });
  for (const [argument, array] of Object.entries(inputs)) {
    given[argument] = bufferOf(array, STORAGE, true);
    new Uint8Array(given[argument].getMappedRange()).set(bytesOf(array));
    given[argument].unmap();
  }
  const made = Object.entries(outputs).map(([argument, array]) => {
    given[argument] = bufferOf(array, STORAGE);
    return [given[argument], array, bufferOf(array, 0x01 | 0x08)];
  });
  try {
    await run(device, name, n, descending, given, row, true);
    const encoder = device.createCommandEncoder();
    for (const [from, , to] of made) encoder.copyBufferToBuffer(from, 0, to, 0, to.size);
    device.queue.submit([encoder.finish()]);
    await Promise.all(made.map(([, , to]) => to.mapAsync(1)));
    for (const [, array, to] of made) bytesOf(array).set(new Uint8Array(to.getMappedRange(), 0, array.byteLength));
  } finally {
    for (const buffer of Object.values(given)) buffer.destroy();
    for (const [, , to] of made) to.destroy();
  }
}
