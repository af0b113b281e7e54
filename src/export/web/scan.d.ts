export interface ScanOptions {
  /** "cumsum", which is meant where nothing is said, or the name of a monoid of one's own. */
  operation?: Operation;
  /** The type of the elements, by default the first that was exported. */
  type?: Type;
  /** Of one's own monoids: the state before every element. */
  exclusive?: boolean;
}
/** Makes a scan of n elements ready. */
export function prepareScan(
  device: GPUDevice,
  n: number,
  options?: ScanOptions,
): Promise<Plan<{ data: Memory; into: Memory }>>;
/** Writes what n elements come to, each with all before it, into a buffer. Resolves when the work is submitted. */
export function scan(
  device: GPUDevice,
  data: Memory,
  n: number,
  options: ScanOptions & { into: Memory },
): Promise<void>;
/** The same of a typed array. */
export function scanArray(device: GPUDevice, data: Numbers, options?: ScanOptions): Promise<Results>;
