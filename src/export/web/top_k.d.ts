export interface TopKOptions {
  /** The type of the keys; by default the first exported one. */
  type?: Type;
  /** The number of elements to select; by default the first exported one. */
  k?: K;
  /** Whether to select the largest elements (the default) or the smallest. NaN is selected last. */
  descending?: boolean;
  /** Selects from independent rows of this length, if the export has it or "any"; n is then the number of rows. */
  row?: number;
}
/** Prepares a selection from n keys. */
export function prepareTopK(
  device: GPUDevice,
  n: number,
  options?: TopKOptions,
): Promise<Plan<{ keys: Memory; into: Memory; indices: Memory }>>;
/** Writes the top k of n keys in order, and their indices as u64, to buffers. Resolves when the work is submitted. */
export function topK(
  device: GPUDevice,
  keys: Memory,
  n: number,
  options: TopKOptions & { into: Memory; indices: Memory },
): Promise<void>;
/** The top k elements of a typed array in order, and their indices. Of equal elements the first come first. */
export function topKArray<Keys extends Numbers>(
  device: GPUDevice,
  keys: Keys,
  options?: TopKOptions,
): Promise<{ values: Keys; indices: Uint32Array }>;
