/** What a sort works on. Where nothing is said of `into`, keys and values are sorted in place. */
export interface Sorted {
  keys: Memory;
  into?: Memory;
  values?: Memory;
  valuesInto?: Memory;
}
export interface SortOptions {
  /** The type of the keys, by default the first that was exported. */
  type?: Type;
  descending?: boolean;
  /** The length of rows that are sorted each for itself, if the export has it, or any; n is their number then. */
  row?: number;
}
/** Makes a sort of n keys ready; `values` is the type of what is taken along, of which only the size counts. */
export function prepareSort(
  device: GPUDevice,
  n: number,
  options?: SortOptions & { values?: ValuesType },
): Promise<Plan<Sorted>>;
/** Sorts n keys of a buffer on the device, in place or into another. Resolves when the work is submitted. */
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
/** A sorted copy of a typed array, and of values in the order of their keys. */
export function sortArray<Keys extends Numbers, Values extends Numbers>(
  device: GPUDevice,
  keys: Keys,
  options: SortOptions & { values: Values },
): Promise<{ keys: Keys; values: Values }>;
