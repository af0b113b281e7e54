// Schedules of one's own

export const prepare = (device, name, n) => prepared(device, name, n);
