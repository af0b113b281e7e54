// The first k in order

const topKName = (type, k, row) => `top_k ${type} ${k}${row ? ` rows ${row}` : ""}`;

export const prepareTopK = (device, n, { type = FIRST, k = KS[0], row, descending = true } = {}) =>
  prepared(device, topKName(type, k, row), n, descending);

export const topK = (device, keys, n, { into, indices, type = FIRST, k = KS[0], row, descending = true }) =>
  run(device, topKName(type, k, row), n, descending, { keys, into, indices });

export async function topKArray(device, keys, { k = KS[0], row, descending = true, type = typeOf(keys) } = {}) {
  const rows = keys.length / (row ?? keys.length);
  const into = new keys.constructor(rows * k);
  const indices = new Uint32Array(2 * rows * k);
  const name = topKName(type, k, row);
  await runOnArrays(device, name, row ? rows : keys.length, descending, { keys }, { into, indices });
  return { values: into, indices: indices.filter((_, i) => i % 2 === 0) };
}
