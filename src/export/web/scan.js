// Scans

const scanName = (operation, type, exclusive) =>
  operation === "cumsum" ? `cumsum ${type}` : `scan ${operation}${exclusive ? " exclusive" : ""}`;

export const prepareScan = (device, n, { operation = "cumsum", type = FIRST, exclusive = false } = {}) =>
  prepared(device, scanName(operation, type, exclusive), n);

export const scan = (device, data, n, { operation = "cumsum", type = FIRST, exclusive = false, into }) =>
  run(device, scanName(operation, type, exclusive), n, false, { data, into });

export async function scanArray(device, data, { operation = "cumsum", type, exclusive = false } = {}) {
  const name = scanName(operation, type ?? (operation === "cumsum" ? typeOf(data) : ""), exclusive);
  const n = lengthOf(name, data);
  const into = resultsOf(name, n);
  await runOnArrays(device, name, n, false, { data }, { into });
  return into;
}
