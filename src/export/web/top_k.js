// Top-k selections

export const prepareTopK = (device, n, { type = FIRST, k = KS[0], row, descending = true } = {}) =>
  prepared(device, `top_k ${type} ${k}`, n, descending, row);

export const topK = (device, keys, n, { into, indices, type = FIRST, k = KS[0], row, descending = true }) =>
  run(device, `top_k ${type} ${k}`, n, descending, { keys, into, indices }, row);

export async function topKArray(device, keys, { k = KS[0], row, descending = true, type = typeOf(keys) } = {}) {
  const n = keys.length / (row ?? 1);
  const rows = row ? Math.floor(n) : 1;
  const into = new keys.constructor(rows * k);
  const indices = new Uint32Array(2 * rows * k);
  await runOnArrays(device, `top_k ${type} ${k}`, n, descending, { keys }, { into, indices }, row);
  return { values: into, indices: indices.filter((_, i) => i % 2 === 0) };
}
