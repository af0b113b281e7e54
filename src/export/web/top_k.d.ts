export interface TopKOptions {
  /** The type of the keys, by default the first that was exported. */
  type?: Type;
  /** How many are selected, by default the first number that was exported. */
  k?: K;
  /** The greatest first, as is meant where nothing is said; or the least. NaN is selected last. */
  descending?: boolean;
  /** The length of rows that are selected from each for itself, if the export has it, or any; n is their number then. */
  row?: number;
}
/** Makes a selection from n keys ready. */
export function prepareTopK(
  device: GPUDevice,
  n: number,
  options?: TopKOptions,
): Promise<Plan<{ keys: Memory; into: Memory; indices: Memory }>>;
/** Writes the first k of n keys in order, and where they stand, as u64, into buffers. Resolves when the work is submitted. */
export function topK(
  device: GPUDevice,
  keys: Memory,
  n: number,
  options: TopKOptions & { into: Memory; indices: Memory },
): Promise<void>;
/** The first k elements of a typed array in order, and where they stand. Of equal ones the first come first. */
export function topKArray<Keys extends Numbers>(
  device: GPUDevice,
  keys: Keys,
  options?: TopKOptions,
): Promise<{ values: Keys; indices: Uint32Array }>;
