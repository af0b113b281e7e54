// Translates WGSL by naga: node naga.mjs FOLDER, where the folder is that of the npm package naga-wasm.
// Comes in as JSON: {to, texts}. Goes out as JSON: for each text {code}, in base64, or {error}.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

Symbol.dispose ??= Symbol.for("Symbol.dispose");
const naga = await import(pathToFileURL(path.join(process.argv[2], "dist", "node.js")));

const WRITERS = {
  spirv: (module, info) => naga.writeSpirv(module, info),
  msl: (module, info) => naga.writeMsl(module, info, { langVersion: [2, 4] }),
  hlsl: (module, info) => naga.writeHlsl(module, info, { shaderModel: "6_0" }),
};

const { to, texts } = JSON.parse(fs.readFileSync(0, "utf-8"));
const answers = texts.map((text) => {
  try {
    const module = naga.parseWgsl(text);
    const code = WRITERS[to](module, naga.validate(module));
    return { code: Buffer.from(typeof code === "string" ? code : new Uint8Array(code.buffer)).toString("base64") };
  } catch (error) {
    return { error: error.formatted || error.message || String(error) };
  }
});
process.stdout.write(JSON.stringify(answers));
