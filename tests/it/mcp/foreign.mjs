// Drives the service with the client of npm's `@modelcontextprotocol/sdk`: arguments are the mode,
// then a URL or a program.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.cwd() + "/");
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const [, transport, target, session, token] = process.argv.slice(2);
const server =
  transport === "http"
    ? new StreamableHTTPClientTransport(new URL(target), {
        requestInit: { headers: { Authorization: `Bearer ${token}` } },
      })
    : new StdioClientTransport({
        command: target,
        args: ["mcp"],
        env: { ...process.env, SVC_TOKEN: token },
      });
const client = new Client({ name: "test", version: "1" });
await client.connect(server);
const tools = await client.listTools();
const templates = await client.listResourceTemplates();
// The client checks a structured result against the schema of its tool.
const found = await client.callTool({ name: "find_evidence", arguments: { query: "pager window" } });
const calls = await client.callTool({ name: "open_evidence", arguments: { session_id: session } });
const refused = await client.callTool({ name: "open_evidence", arguments: { session_id: "elsewhere" } });
const call = calls.structuredContent.calls[0].call;
const uri = `svc://session/${session}/call/${call}/part/input/0/0`;
const part = await client.readResource({ uri });
console.log(
  JSON.stringify({
    version: server.protocolVersion ?? null,
    tools: tools.tools.map((tool) => tool.name),
    templates: templates.resourceTemplates.length,
    found: found.structuredContent,
    text: found.content[0].text,
    refused: refused.isError && refused.content[0].text,
    part: part.contents[0].text,
  }),
);
await client.close();
