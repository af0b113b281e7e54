// Sorting; what is what stands beside the types.

const sortName = (type, values, row) => `sort ${type}${values ? ` with ${values}` : ""}${row ? ` rows ${row}` : ""}`;

export const prepareSort = (device, n, { type = FIRST, values, row, descending = false } = {}) =>
  prepared(device, sortName(type, values, row), n, descending);

export function sort(device, keys, n, options = {}) {
  const { values, type = FIRST, valuesType = VALUES[0], row, descending = false, into, valuesInto } = options;
  return run(device, sortName(type, values && valuesType, row), n, descending, { keys, values, into, valuesInto });
}

export async function sortArray(device, keys, { values, row, descending = false, type = typeOf(keys) } = {}) {
  const into = keys.slice();
  if (!values) {
    await runOnArrays(device, sortName(type, "", row), keys.length / (row ?? 1), descending, { keys }, { into });
    return into;
  }
  if (values.length !== keys.length)
    throw new RangeError(`values: expected one for each of ${keys.length} keys, found ${values.length}`);
  const valuesInto = values.slice();
  const name = sortName(type, `u${8 * values.BYTES_PER_ELEMENT}`, row);
  await runOnArrays(device, name, keys.length / (row ?? 1), descending, { keys, values }, { into, valuesInto });
  return { keys: into, values: valuesInto };
}
