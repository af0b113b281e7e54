export interface ArgsortOptions {
  /** The type of the keys; by default the first exported one. */
  type?: Type;
  descending?: boolean;
  /** Sorts independent rows of this length, if the export has it or "any"; n is then the number of rows. */
  row?: number;
}
/** Prepares an argsort of n keys. */
export function prepareArgsort(
  device: GPUDevice,
  n: number,
  options?: ArgsortOptions,
): Promise<Plan<{ keys: Memory; into: Memory }>>;
/** Writes the argsort of n keys to a buffer, as u32 indices. Resolves when the work is submitted. */
export function argsort(
  device: GPUDevice,
  keys: Memory,
  n: number,
  options: ArgsortOptions & { into: Memory },
): Promise<void>;
/** The stable argsort of a typed array. */
export function argsortArray(device: GPUDevice, keys: Numbers, options?: ArgsortOptions): Promise<Uint32Array>;
