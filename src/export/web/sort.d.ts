/** The buffers of a sort. Without `into` and `valuesInto`, keys and values are sorted in place. */
export interface Sorted {
  keys: Memory;
  into?: Memory;
  values?: Memory;
  valuesInto?: Memory;
}
export interface SortOptions {
  /** The type of the keys; by default the first exported one. */
  type?: Type;
  descending?: boolean;
  /** Sorts independent rows of this length, if the export has it or "any"; n is then the number of rows. */
  row?: number;
}
/** Prepares a sort of n keys; `values` is the type of values that are carried along, of which only the size counts. */
export function prepareSort(
  device: GPUDevice,
  n: number,
  options?: SortOptions & { values?: ValuesType },
): Promise<Plan<Sorted>>;
/** Sorts n keys in a buffer, in place or into another. Resolves when the work is submitted. */
export function sort(
  device: GPUDevice,
  keys: Memory,
  n: number,
  options?: SortOptions & Omit<Sorted, "keys"> & { valuesType?: ValuesType },
): Promise<void>;
/** A sorted copy of a typed array. */
export function sortArray<Keys extends Numbers>(
  device: GPUDevice,
  keys: Keys,
  options?: SortOptions & { values?: undefined },
): Promise<Keys>;
/** A sorted copy of a typed array, and of values by their keys. */
export function sortArray<Keys extends Numbers, Values extends Numbers>(
  device: GPUDevice,
  keys: Keys,
  options: SortOptions & { values: Values },
): Promise<{ keys: Keys; values: Values }>;
