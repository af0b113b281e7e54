// Argsorts

export const prepareArgsort = (device, n, { type = FIRST, row, descending = false } = {}) =>
  prepared(device, `argsort ${type}`, n, descending, row);

export const argsort = (device, keys, n, { into, type = FIRST, row, descending = false }) =>
  run(device, `argsort ${type}`, n, descending, { keys, into }, row);

export async function argsortArray(device, keys, { row, descending = false, type = typeOf(keys) } = {}) {
  const into = new Uint32Array(keys.length);
  await runOnArrays(device, `argsort ${type}`, keys.length / (row ?? 1), descending, { keys }, { into }, row);
  return into;
}
