// Runs cases through exported modules, and writes what comes out: each line of the input is {module, folder, cases}, and is
// answered by one that is empty, or says what went wrong. Arguments are features of the device. It ends with 3 where there
// is no adapter.
import "./patient.mjs";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);
const gpu = (globalThis.gpu = create([])); // kept: a device does not keep what it was made by
const adapter = await gpu.requestAdapter();
if (!adapter) process.exit(3);
const device = await adapter.requestDevice({ requiredFeatures: process.argv.slice(2) });
const refused = [];
device.addEventListener("uncapturederror", ({ error }) => refused.push(error.message));

let module, folder; // those of the line
const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, i8: Int8Array, i16: Int16Array,
  i32: Int32Array, i64: BigInt64Array, f16: Uint16Array, f32: Float32Array, f64: Float64Array }; // prettier-ignore
const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;

const bytesOf = (name) => new Uint8Array(fs.readFileSync(path.join(folder, name)));
function arrayOf(name, type) {
  const bytes = bytesOf(name);
  return new ARRAYS[type](bytes.buffer, bytes.byteOffset, bytes.byteLength / ARRAYS[type].BYTES_PER_ELEMENT);
}
const write = (name, array) =>
  fs.writeFileSync(path.join(folder, name), new Uint8Array(array.buffer, array.byteOffset, array.byteLength));

/** A buffer with bytes at an offset, and others around them. */
function bufferWith(bytes, offset = 0, filler = 0xa5) {
  const size = Math.ceil((offset + bytes.length + 8) / 4) * 4;
  const buffer = device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST, mappedAtCreation: true });
  const held = new Uint8Array(buffer.getMappedRange());
  held.fill(filler);
  held.set(bytes, offset);
  buffer.unmap();
  return buffer;
}
async function contentsOf(buffer) {
  const copy = device.createBuffer({ size: buffer.size, usage: MAP_READ | COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(1);
  return new Uint8Array(copy.getMappedRange().slice(0));
}

const WAYS = {
  /** Typed arrays in, typed arrays out. */
  async arrays({ call, input, type, values, options = {} }) {
    const found = await module[call](device, arrayOf(input, type), {
      ...options,
      ...(values ? { values: arrayOf(values, "u32") } : {}),
    });
    if (typeof found === "boolean") return [Uint8Array.of(found)];
    if (typeof found === "number") return [Float64Array.of(found)];
    if (typeof found === "bigint") return [BigInt64Array.of(found)];
    if (call === "topKArray") return [found.values, found.indices];
    return values ? [found.keys, found.values] : [found];
  },
  /** Keys, and perhaps values, in place, at an offset of a buffer; what comes back is all of the buffers. */
  async inPlace({ input, type, values, offset = 0, n, options = {} }) {
    const keys = bufferWith(bytesOf(input), offset);
    const beside = values && bufferWith(bytesOf(values));
    const given = { ...options, type, ...(beside ? { values: beside } : {}) };
    await module.sort(device, { buffer: keys, offset }, n, given);
    return Promise.all([contentsOf(keys), ...(beside ? [contentsOf(beside)] : [])]);
  },
  /** Two sorts of one plan and one of another in the caller's encoder: `first` down, and `second`, in place, both ways. */
  async together({ first, second, type, n }) {
    const [one, other] = [bufferWith(bytesOf(first)), bufferWith(bytesOf(second))];
    const into = bufferWith(bytesOf(first).map(() => 0));
    const down = await module.prepareSort(device, n, { type, descending: true });
    const up = await module.prepareSort(device, n, { type });
    const encoder = device.createCommandEncoder();
    down.encode(encoder, { keys: one, into });
    down.encode(encoder, { keys: other });
    up.encode(encoder, { keys: into, into: one });
    device.queue.submit([encoder.finish()]);
    const found = await Promise.all([into, other, one].map(contentsOf));
    down.destroy();
    up.destroy();
    return found;
  },
  /** A schedule of one's own, on buffers by their names. */
  async own({ schedule, input, bytes, n }) {
    const data = bufferWith(bytesOf(input)), results = bufferWith(new Uint8Array(bytes));
    const plan = await module.prepare(device, schedule, n);
    const encoder = device.createCommandEncoder();
    plan.encode(encoder, { data, results });
    device.queue.submit([encoder.finish()]);
    return [await contentsOf(results)];
  },
  /** How long a prepared sort takes, each time until the device has finished; milliseconds. */
  async time({ input, type, n, times }) {
    const [keys, into] = [bufferWith(bytesOf(input)), bufferWith(bytesOf(input))];
    const plan = await module.prepareSort(device, n, { type });
    const found = new Float64Array(times);
    for (let i = 0; i < times; i++) {
      await device.queue.onSubmittedWorkDone();
      const start = performance.now();
      const encoder = device.createCommandEncoder();
      plan.encode(encoder, { keys, into });
      device.queue.submit([encoder.finish()]);
      await device.queue.onSubmittedWorkDone();
      found[i] = performance.now() - start;
    }
    return [found];
  },
  /** What a call says that must fail. */
  async refused({ call, input, type, n, values, options = {} }) {
    if (values) options = { ...options, values: bufferWith(bytesOf(values)) };
    try {
      await module[call](device, n === undefined ? arrayOf(input, type) : bufferWith(bytesOf(input)), n ?? options, options);
    } catch (error) {
      return [new TextEncoder().encode(`${error.name}: ${error.message}`)];
    }
    return [new Uint8Array()];
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  try {
    module = await import(asked.module);
    folder = asked.folder;
    for (const one of asked.cases) {
      const found = await WAYS[one.way](one);
      found.forEach((array, number) => write(`${one.name}.${number}.out`, array));
    }
  } catch (error) {
    refused.push(error.stack);
  }
  console.log(refused.splice(0).join("; ").replaceAll("\n", " "));
}
process.exit(0);
