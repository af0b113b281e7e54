export interface ArgsortOptions {
  /** The type of the keys, by default the first that was exported. */
  type?: Type;
  descending?: boolean;
  /** The length of rows that are sorted each for itself, if the export has it, or any; n is their number then. */
  row?: number;
}
/** Makes an argsort of n keys ready. */
export function prepareArgsort(
  device: GPUDevice,
  n: number,
  options?: ArgsortOptions,
): Promise<Plan<{ keys: Memory; into: Memory }>>;
/** Writes where n keys come from in order, as u32, into a buffer. Resolves when the work is submitted. */
export function argsort(
  device: GPUDevice,
  keys: Memory,
  n: number,
  options: ArgsortOptions & { into: Memory },
): Promise<void>;
/** Where the elements of a typed array come from in order. Equal ones keep their order. */
export function argsortArray(device: GPUDevice, keys: Numbers, options?: ArgsortOptions): Promise<Uint32Array>;
