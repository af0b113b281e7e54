// A program that uses everything an exported module says of itself.
import { argsort, argsortArray, prepareSort, sort, sortArray, topKArray, type Memory, type Plan } from "GPUSORT.js";

export async function use(device: GPUDevice, keys: GPUBuffer, values: Memory, into: GPUBuffer): Promise<number> {
  await sort(device, keys, 100, { type: "f32", descending: true, values });
  await sort(device, { buffer: keys, offset: 256 }, 10, { into });
  await argsort(device, keys, 10, { type: "u32", into });
  const plan: Plan<{ keys: Memory }> = await prepareSort(device, 1000, { values: "u32" });
  plan.encode(device.createCommandEncoder(), { keys });
  plan.destroy();
  const sorted: Float32Array = await sortArray(device, new Float32Array(5));
  const both = await sortArray(device, new Uint32Array(5), { values: new Float32Array(5) });
  const places: Uint32Array = await argsortArray(device, new Int32Array(5), { descending: true });
  const { values: best, indices }: { values: Float32Array; indices: Uint32Array } = await topKArray(device, sorted, { k: 3 });
  return best[0]! + indices[0]! + sorted[0]! + both.keys[0]! + both.values[0]! + places[0]!;
}
