export interface ScanOptions {
  /** "cumsum" (the default), or the name of an exported monoid. */
  operation?: Operation;
  /** The type of the elements; by default the first exported one. */
  type?: Type;
  /** For exported monoids: an exclusive scan. */
  exclusive?: boolean;
}
/** Prepares a scan of n elements. */
export function prepareScan(
  device: GPUDevice,
  n: number,
  options?: ScanOptions,
): Promise<Plan<{ data: Memory; into: Memory }>>;
/** Writes the scan (prefix sums) of n elements to a buffer. Resolves when the work is submitted. */
export function scan(
  device: GPUDevice,
  data: Memory,
  n: number,
  options: ScanOptions & { into: Memory },
): Promise<void>;
/** The scan of a typed array. */
export function scanArray(device: GPUDevice, data: Numbers, options?: ScanOptions): Promise<Results>;
