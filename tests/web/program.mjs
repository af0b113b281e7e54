// Runs a program that finds WebGPU where browsers have it: node program.mjs FILE
import "./patient.mjs";
import path from "node:path";
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);
Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) } });
const { GPUAdapter } = globals;
const requestDevice = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (options) {
  const device = await requestDevice.call(this, options);
  device.addEventListener("uncapturederror", ({ error }) => {
    console.error(error.message);
    process.exit(4);
  });
  return (globalThis.device = device);
};
await import(path.resolve(process.argv[2]));
await globalThis.device?.queue.onSubmittedWorkDone();
process.exit(0);
