// How many keys a second are sorted: on the GPU, on the GPU with copies, and by the browser.
import { prepareSort, sortArray } from "./gpusort.js";

export const ARRAYS = { f32: Float32Array, u32: Uint32Array, i32: Int32Array };
export const SIZES = [10, 12, 14, 16, 18, 20, 22].map((bits) => 1 << bits);

/** Any numbers; floats between 0 and 1. */
export function randomKeys(type, n) {
  const keys = new ARRAYS[type](n);
  if (type === "f32") return keys.map(Math.random);
  const bytes = new Uint8Array(keys.buffer);
  for (let i = 0; i < bytes.length; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536));
  return keys;
}

/** Millions of keys a second: of as many sorts as fit into a span, one at least, behind one that is not counted. */
async function speedOf(n, run, milliseconds) {
  await run();
  const start = performance.now();
  let times = 0;
  do {
    await run();
    times += 1;
  } while (performance.now() - start < milliseconds);
  return (n * times) / 1000 / (performance.now() - start);
}

/** Three speeds for one number of keys, and whether the GPU's result is the browser's. */
export async function measured(device, type, n, milliseconds = 200) {
  const keys = randomKeys(type, n);
  const sorted = await sortArray(device, keys);
  const expected = keys.slice().sort();
  const equal = new Uint32Array(sorted.buffer).every((bits, i) => bits === new Uint32Array(expected.buffer)[i]);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const [given, into] = [1, 2].map(() => device.createBuffer({ size: keys.byteLength, usage }));
  device.queue.writeBuffer(given, 0, keys);
  const plan = await prepareSort(device, n, { type });
  try {
    const onDevice = async () => {
      const encoder = device.createCommandEncoder();
      plan.encode(encoder, { keys: given, into });
      device.queue.submit([encoder.finish()]);
      await device.queue.onSubmittedWorkDone();
    };
    const gpu = await speedOf(n, onDevice, milliseconds);
    const copied = await speedOf(n, () => sortArray(device, keys), milliseconds);
    const array = await speedOf(n, () => keys.slice().sort(), milliseconds);
    return { n, gpu, copied, array, equal };
  } finally {
    plan.destroy();
    given.destroy();
    into.destroy();
  }
}
