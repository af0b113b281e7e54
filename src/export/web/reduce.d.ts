export interface ReduceOptions {
  /** Such as "sum", or the name of a monoid of one's own. */
  operation: Operation;
  /** The type of the elements, by default the first that was exported. */
  type?: Type;
}
/** Makes a reduction of n elements ready. */
export function prepareReduce(
  device: GPUDevice,
  n: number,
  options: ReduceOptions,
): Promise<Plan<{ data: Memory; into: Memory }>>;
/** Writes what n elements come to into a buffer. Resolves when the work is submitted. */
export function reduce(
  device: GPUDevice,
  data: Memory,
  n: number,
  options: ReduceOptions & { into: Memory },
): Promise<void>;
/** What the elements of a typed array come to: a number, or several where a state has as many; whether, for "any" and "all". */
export function reduceArray(
  device: GPUDevice,
  data: Numbers,
  options: ReduceOptions,
): Promise<number | bigint | boolean | Results>;
