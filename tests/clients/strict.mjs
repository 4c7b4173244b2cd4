// Compiles every published schema in ajv's strict mode, and validates its examples.
import fs from "node:fs";
import { createRequire } from "node:module";

const [modules, schemas] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const Ajv2020 = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;
let examples = 0;
for (const { file } of JSON.parse(fs.readFileSync(`${schemas}/index.json`, "utf8"))) {
  const schema = JSON.parse(fs.readFileSync(`${schemas}/${file}`, "utf8"));
  const ajv = new Ajv2020();
  addFormats(ajv);
  const validate = ajv.compile(schema);
  for (const example of schema.examples) {
    if (!validate(example)) throw new Error(`${file}: ${ajv.errorsText(validate.errors)}`);
    examples += 1;
  }
}
console.log(examples > 50 ? "every example is valid" : `only ${examples} examples`);
