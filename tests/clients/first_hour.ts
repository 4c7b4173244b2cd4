// Posts a model call, finds it and reads it, with the client that @hey-api/openapi-ts generates.
//
// Usage: first_hour.js BASE_URL OPERATOR_TOKEN INGEST_TOKEN

import { createClient, createConfig } from "./client/client";
import {
  ciFailures,
  contextDiscover,
  evidenceRead,
  ingestGateway,
  sessionDossier,
} from "./client/sdk.gen";
import type { GatewayPayload, Part, TimelineEvent } from "./client/types.gen";

declare const process: { argv: string[] };

const [baseUrl, operatorToken, ingestToken] = process.argv.slice(2);
const operator = createClient(createConfig({ baseUrl, auth: operatorToken }));
const sender = createClient(createConfig({ baseUrl, auth: ingestToken }));

function must(condition: boolean, value: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(value));
}

// Each kind is told by its word, so the compiler knows its members.
function said(part: Part): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.content;
    case "tool_call":
      return part.name;
    case "tool_call_response":
      return part.id;
  }
}

function model(event: TimelineEvent): string | null | undefined {
  return event.event_type === "inference_call" ? event.model : undefined;
}

async function main() {
  const payload: GatewayPayload = {
    litellm_call_id: "call-1",
    model: "gpt-5",
    messages: [{ role: "user", content: "Why does the pager fire at night?" }],
    response: { choices: [{ message: { role: "assistant", content: "A cron job restarts it." } }] },
  };
  const receipt = await ingestGateway({
    client: sender,
    body: {
      provider: "gateway_a",
      session_id: "fix-the-pager",
      payload,
      capture: { id: crypto.randomUUID(), observed_at: new Date().toISOString() },
    },
  });
  must(receipt.data !== undefined && "stored" in receipt.data, receipt.error);

  const found = await contextDiscover({
    client: operator,
    body: { schema_version: 1, query: "cron pager", max_bytes: 16384 },
  });
  must(found.data !== undefined && found.data.items.length === 1, found);
  const candidate = found.data.items[0];
  must(candidate.preview !== null, candidate);

  const read = await evidenceRead({
    client: operator,
    body: {
      schema_version: 1,
      session_id: candidate.session_id,
      references: [candidate.preview.reference],
    },
  });
  must(read.data !== undefined && /pager|cron/.test(said(read.data.items[0].part)), read);

  const dossier = await sessionDossier({
    client: operator,
    path: { session_id: candidate.session_id },
    query: { explain: true },
  });
  must(dossier.data !== undefined && dossier.data.found, dossier);
  must(model(dossier.data.timeline[0]) === "gpt-5", dossier.data.timeline);

  const failures = await ciFailures({
    client: operator,
    query: {
      captured_after: "2026-01-01T00:00:00Z",
      captured_before: "2100-01-01T00:00:00Z",
      repository_provider: "github",
      repository_host: "GitHub.com",
      repository_id: "514200317",
      result: "timed_out",
      workflow_name: "",
      limit: 10,
      explain: true,
    },
  });
  must(failures.data !== undefined && failures.data.outcomes.length === 0, failures);
  console.log("posted, found, read");
}

void main();
