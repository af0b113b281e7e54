// The user's own schedules

export const prepare = (device, name, n) => prepared(device, name, n);
