export interface ReduceOptions {
  /** Such as "sum", or the name of an exported monoid. */
  operation: Operation;
  /** The type of the elements; by default the first exported one. */
  type?: Type;
}
/** Prepares a reduction of n elements. */
export function prepareReduce(
  device: GPUDevice,
  n: number,
  options: ReduceOptions,
): Promise<Plan<{ data: Memory; into: Memory }>>;
/** Writes the reduction of n elements to a buffer. Resolves when the work is submitted. */
export function reduce(
  device: GPUDevice,
  data: Memory,
  n: number,
  options: ReduceOptions & { into: Memory },
): Promise<void>;
/** The reduction of a typed array: a number, an array of the state's numbers, or a boolean for "any" and "all". */
export function reduceArray(
  device: GPUDevice,
  data: Numbers,
  options: ReduceOptions,
): Promise<number | bigint | boolean | Results>;
