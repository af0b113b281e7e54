// Where elements come from

const argsortName = (type, row) => `argsort ${type}${row ? ` rows ${row}` : ""}`;

export const prepareArgsort = (device, n, { type = FIRST, row, descending = false } = {}) =>
  prepared(device, argsortName(type, row), n, descending);

export const argsort = (device, keys, n, { into, type = FIRST, row, descending = false }) =>
  run(device, argsortName(type, row), n, descending, { keys, into });

export async function argsortArray(device, keys, { row, descending = false, type = typeOf(keys) } = {}) {
  const into = new Uint32Array(keys.length);
  await runOnArrays(device, argsortName(type, row), keys.length / (row ?? 1), descending, { keys }, { into });
  return into;
}
