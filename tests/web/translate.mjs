// Validates WGSL by Tint and by naga, and translates it by naga: node translate.mjs TEXTS.json ANSWERS.json
// TEXTS.json is a list of {text, subgroups, bytes}, the last of workgroup memory; Tint makes a pipeline where the null
// adapter has as much. An answer says, for each back end, "" or why it refuses the text.
import fs from "node:fs";
import { create, globals } from "webgpu";

Symbol.dispose ??= Symbol.for("Symbol.dispose");
const naga = await import("naga-wasm");
Object.assign(globalThis, globals);
const gpu = (globalThis.gpu = create(["backend=null"])); // which needs no driver
const adapter = await gpu.requestAdapter();
const { limits } = adapter;
const raised = ["WorkgroupStorageSize", "InvocationsPerWorkgroup", "WorkgroupSizeX"].map((name) => `maxCompute${name}`);
const requiredLimits = Object.fromEntries(raised.map((name) => [name, limits[name]]));
const device = await adapter.requestDevice({ requiredFeatures: ["subgroups"], requiredLimits });

const said = (error) => (error.formatted || error.message || String(error)).replace(/\s+/g, " ").slice(0, 300);

async function tint(text, bytes) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: text });
  const { messages } = await module.getCompilationInfo();
  const error = messages.find(({ type }) => type === "error");
  if (!error && bytes <= limits.maxComputeWorkgroupStorageSize)
    device.createComputePipeline({ layout: "auto", compute: { module } });
  const refused = await device.popErrorScope();
  return error ? `${error.lineNum}: ${error.message}` : refused ? said(refused) : "";
}

const WRITERS = {
  MSL: (module, info) => naga.writeMsl(module, info, { langVersion: [2, 4] }),
  HLSL: (module, info) => naga.writeHlsl(module, info, { shaderModel: "6_0" }),
  "SPIR-V": (module, info) => naga.writeSpirv(module, info, { langVersion: [1, 3] }),
  GLSL: (module, info, text) =>
    naga.writeGlsl(module, info, { version: "310 es", stage: "compute", entryPoint: text.match(/^fn (\w+)/m)[1] }),
};

function translated(text) {
  const found = { naga: "" };
  let module, info;
  try {
    module = naga.parseWgsl(text);
    info = naga.validate(module);
  } catch (error) {
    return { naga: said(error) };
  }
  for (const [name, write] of Object.entries(WRITERS)) {
    try {
      found[name] = write(module, info, text).length ? "" : "an empty text";
    } catch (error) {
      found[name] = said(error);
    }
  }
  return found;
}

const answers = [];
for (const { text, subgroups, bytes } of JSON.parse(fs.readFileSync(process.argv[2])))
  answers.push({ Tint: await tint(subgroups ? `enable subgroups;\n${text}` : text, bytes), ...translated(text) });
fs.writeFileSync(process.argv[3], JSON.stringify(answers));
process.exit(0);
