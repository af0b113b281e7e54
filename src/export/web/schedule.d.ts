/** Prepares an exported schedule, which takes buffers by their names. */
export function prepare(device: GPUDevice, name: Operation, n: number): Promise<Plan>;
