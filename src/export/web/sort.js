// Sorts; the declarations (.d.ts) document the functions.

const sortName = (type, values) => `sort ${type}${values ? ` with ${values}` : ""}`;

export const prepareSort = (device, n, { type = FIRST, values, row, descending = false } = {}) =>
  prepared(device, sortName(type, values), n, descending, row);

export function sort(device, keys, n, options = {}) {
  const { values, type = FIRST, valuesType = VALUES[0], row, descending = false, into, valuesInto } = options;
  return run(device, sortName(type, values && valuesType), n, descending, { keys, values, into, valuesInto }, row);
}

export async function sortArray(device, keys, { values, row, descending = false, type = typeOf(keys) } = {}) {
  const into = keys.slice();
  const n = keys.length / (row ?? 1);
  if (!values) {
    await runOnArrays(device, sortName(type), n, descending, { keys }, { into }, row);
    return into;
  }
  if (values.length !== keys.length)
    throw new RangeError(`values: expected one for each of ${keys.length} keys, found ${values.length}`);
  const valuesInto = values.slice();
  const name = sortName(type, `u${8 * values.BYTES_PER_ELEMENT}`);
  await runOnArrays(device, name, n, descending, { keys, values }, { into, valuesInto }, row);
  return { keys: into, values: valuesInto };
}
