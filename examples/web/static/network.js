// The bitonic network: which pairs it compares, and what each launch leaves in the GPU's memory.
import { MOST, PASSES } from "./data.js";
import { prepare } from "./gpusort.js";

const NAMES = new Map([[Float32Array, "f32"], [Uint32Array, "u32"], [Int32Array, "i32"]]); // prettier-ignore

/** The passes that sort n elements, first to last. */
export const passesOf = (n) => PASSES.filter(({ stage }) => 1 << stage < n);

/** The pairs of elements that a pass compares, the lower index first; none reaches beyond the n elements. */
export function pairsOf({ mask }, n) {
  const lower = Array.from({ length: n }, (_, i) => i).filter((i) => i < (i ^ mask) && (i ^ mask) < n);
  return lower.map((i) => [i, i ^ mask]);
}

/** The elements before the first launch, and after every one, in one submission. */
export async function statesOf(device, keys, { descending = false } = {}) {
  const n = keys.length;
  if (n > MOST) throw new RangeError(`expected at most ${MOST} elements, found ${n}`);
  const passes = passesOf(n);
  if (!passes.length) return [keys.slice()];
  const bytes = keys.byteLength;
  const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const data = device.createBuffer({ size: bytes, usage: STORAGE | COPY_SRC, mappedAtCreation: true });
  new keys.constructor(data.getMappedRange()).set(keys);
  data.unmap();
  const seen = device.createBuffer({ size: bytes * passes.length, usage: COPY_DST | MAP_READ });
  const name = `${NAMES.get(keys.constructor)} ${descending ? "descending" : "ascending"}`;
  const plan = await prepare(device, name, n);
  try {
    const encoder = device.createCommandEncoder();
    plan.encode(encoder, { data }, (_, launch) => encoder.copyBufferToBuffer(data, 0, seen, bytes * launch, bytes));
    device.queue.submit([encoder.finish()]);
    await seen.mapAsync(GPUMapMode.READ);
    const all = new keys.constructor(seen.getMappedRange().slice(0));
    return [keys.slice(), ...passes.map((_, i) => all.slice(i * n, (i + 1) * n))];
  } finally {
    plan.destroy();
    data.destroy();
    seen.destroy();
  }
}
