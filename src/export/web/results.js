// Results of another type than the input's

const NUMBERS = {
  bool: Uint8Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, i8: Int8Array, i16: Int16Array,
  i32: Int32Array, i64: BigInt64Array, f16: globalThis.Float16Array ?? Uint16Array, f32: Float32Array, f64: Float64Array,
}; // prettier-ignore

/** An array for so many results of a schedule. */
function resultsOf(name, n) {
  const [type, count] = SCHEDULES[name]?.result ?? ["u8", 0]; // what is not there is said when it is run
  return new NUMBERS[type](Math.floor(n) * count);
}

/** How many elements the data of a schedule has, of one scalar or several. */
const lengthOf = (name, data) => data.length / (SCHEDULES[name]?.scalars ?? 1);
