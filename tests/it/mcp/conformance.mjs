// Runs the protocol's own conformance suite. Arguments are the address of the service, a token, the
// revision of the protocol, and a folder for what the suite writes.
//
// The suite sends no token, so it calls a proxy of this script, which adds one and passes on everything
// else as it is. What each scenario found goes to standard output.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import path from "node:path";

const [service, token, revision, folder] = process.argv.slice(2);
const target = new URL(service);

const proxy = http.createServer((asked, answer) => {
  const headers = { authorization: `Bearer ${token}`, ...asked.headers };
  const { hostname: host, port } = target;
  const passed = http.request({ host, port, path: asked.url, method: asked.method, headers }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  passed.on("error", () => answer.destroy());
  asked.pipe(passed);
});
await new Promise((ready) => proxy.listen(0, "127.0.0.1", ready));

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const suite = path.join(process.cwd(), "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
const run = spawn(process.execPath, [suite, "server", "--url", url, "--requirements", revision, "-o", folder], {
  stdio: ["ignore", "ignore", "inherit"],
});
// It fails as soon as one scenario does, also one that is not of ours.
await new Promise((ended) => run.on("close", ended));
proxy.close();

const found = {};
for (const name of readdirSync(folder)) {
  // server-SCENARIO-YYYY-MM-DDTHH-MM-SS-mmmZ
  const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
  const checks = JSON.parse(readFileSync(path.join(folder, name, "checks.json"), "utf8"));
  found[scenario] = checks.map(({ id, status, errorMessage }) => [id, status, errorMessage ?? ""]);
}
console.log(JSON.stringify(found));
