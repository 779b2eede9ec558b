// Tasks with the official library for them, on the TypeScript client v2, whose own
// calls take none: node tasks_v2.mjs URL. The server has --task-after 0.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const url = process.argv[2];
const protocolVersion = "2026-07-28";
const clientInfo = { name: "e2e", version: "1.0.0" };

let id = 0;
const rawDispatch = async (request, options = {}) => {
  const response = await fetch(url, {
    method: "POST",
    signal: options.signal,
    headers: {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream", "MCP-Protocol-Version": protocolVersion,
      "Mcp-Method": request.method, "Mcp-Name": request.params.name ?? request.params.taskId,
    },
    body: JSON.stringify({ ...request, jsonrpc: "2.0", id: ++id }),
  });
  const { result, error } = await response.json();
  return error ? { kind: "error", error } : { kind: "result", result };
};

const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: protocolVersion } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const session = createTaskSessionFromClient(client, {
  endpointId: "e2e", rawDispatch, v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities: {} },
});
const exec = (line) => session.callTool("exec", { command: "sh", args: ["-c", line], env: {}, cwd: "", stdout: true, stderr: true });
const check = async (name, fn) => { await fn(); console.log("ok", name); };

await check("a task and its result", async () => {
  const execution = await exec("sleep 0.5; echo done");
  assert.equal(execution.kind, "task");
  const seen = [];
  const { outcome } = await execution.settle({ onEvent: (event) => { seen.push(event.type); } });
  assert.equal(resultFromTaskOutcome(outcome).structuredContent.output, "done\n");
  assert.equal(seen.at(-1), "outcome");
});
await check("isError is completed", async () => {
  const { outcome } = await (await exec("sleep 0.5; exit 3")).settle();
  assert.equal(outcome.status, "completed");
  assert.equal(outcome.result.isError, true);
});
await check("cancel", async () => {
  const execution = await exec("sleep 300");
  await execution.cancel();
  const { outcome } = await execution.settle();
  assert.equal(outcome.status, "cancelled");
});
await check("what is over at once", async () => {
  const execution = await session.callTool("todo", { newTodos: ["x"] });
  assert.equal(execution.kind, "immediate");
});
await session.close();
await client.close();
process.exit(0);
