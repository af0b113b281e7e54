// Reductions

const reductionName = (operation, typeOfData) =>
  SCHEDULES[`reduce ${operation}`] ? `reduce ${operation}` : `${operation} ${typeOfData()}`;

export const prepareReduce = (device, n, { operation, type = FIRST }) =>
  prepared(device, reductionName(operation, () => type), n);

export const reduce = (device, data, n, { operation, type = FIRST, into }) =>
  run(device, reductionName(operation, () => type), n, false, { data, into });

export async function reduceArray(device, data, { operation, type } = {}) {
  const name = reductionName(operation, () => type ?? typeOf(data));
  const into = resultsOf(name, 1);
  await runOnArrays(device, name, lengthOf(name, data), false, { data }, { into });
  if (into.length > 1) return into;
  return SCHEDULES[name].result[0] === "bool" ? into[0] !== 0 : into[0];
}
