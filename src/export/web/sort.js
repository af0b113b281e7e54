// Sorting; what is what stands beside the types.

const sortName = (type, values) => `sort ${type}${values ? ` with ${values}` : ""}`;

export const prepareSort = (device, n, { type = FIRST, values, descending = false } = {}) =>
  prepared(device, sortName(type, values), n, descending);

export function sort(device, keys, n, options = {}) {
  const { values, type = FIRST, valuesType = VALUES[0], descending = false, into, valuesInto } = options;
  return run(device, sortName(type, values && valuesType), n, descending, { keys, values, into, valuesInto });
}

export async function sortArray(device, keys, { values, descending = false, type = typeOf(keys) } = {}) {
  const into = keys.slice();
  if (!values) {
    await runOnArrays(device, sortName(type), keys.length, descending, { keys }, { into });
    return into;
  }
  if (values.length !== keys.length)
    throw new RangeError(`values: expected one for each of ${keys.length} keys, found ${values.length}`);
  const valuesInto = values.slice();
  const name = sortName(type, `u${8 * values.BYTES_PER_ELEMENT}`);
  await runOnArrays(device, name, keys.length, descending, { keys, values }, { into, valuesInto });
  return { keys: into, values: valuesInto };
}
