// Where elements come from

export const prepareArgsort = (device, n, { type = FIRST, descending = false } = {}) =>
  prepared(device, `argsort ${type}`, n, descending);

export const argsort = (device, keys, n, { into, type = FIRST, descending = false }) =>
  run(device, `argsort ${type}`, n, descending, { keys, into });

export async function argsortArray(device, keys, { descending = false, type = typeOf(keys) } = {}) {
  const into = new Uint32Array(keys.length);
  await runOnArrays(device, `argsort ${type}`, keys.length, descending, { keys }, { into });
  return into;
}
