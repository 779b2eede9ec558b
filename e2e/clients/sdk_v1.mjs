// Drives all nine tools of the base skill over stdio with the official
// TypeScript SDK: node sdk_v1.mjs BINARY WORKSPACE. Prints one line per check.
import assert from "node:assert/strict";
import { writeFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [binary, workspace] = process.argv.slice(2);
const transport = new StdioClientTransport({ command: binary, args: ["serve"], cwd: workspace, stderr: "inherit" });
const client = new Client({ name: "e2e", version: "1.0.0" });
await client.connect(transport);

const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
const json = (result) => JSON.parse(result.content[0].text);
const exec = (line, more = {}) => ({ command: "sh", args: ["-c", line], env: {}, cwd: "", stdout: true, stderr: true, ...more });
const check = async (name, fn) => { await fn(); console.log("ok", name); };

await check("list", async () => {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name), ["attemptCompletion", "clearTodo", "editTextFile", "exec", "readImageFile",
    "readPdfFile", "readTextFile", "todo", "writeTextFile"]);
});
await check("writeTextFile", async () => {
  const result = await call("writeTextFile", { path: "notes/a.md", text: "one\ntwo\n<three>\n" });
  assert.equal(result.structuredContent.path, join(workspace, "notes/a.md"));
  assert.equal(readFileSync(join(workspace, "notes/a.md"), "utf8"), "one\ntwo\n<three>\n");
});
await check("readTextFile", async () => {
  const result = await call("readTextFile", { path: "notes/a.md", from: 1, to: 3 });
  assert.deepEqual(result.structuredContent, { path: "notes/a.md", content: "two\n<three>", from: 1, to: 3 });
  assert.deepEqual(json(result), result.structuredContent);
});
await check("editTextFile", async () => {
  await call("editTextFile", { path: "notes/a.md", oldText: "two", newText: "$& 2" });
  assert.equal(readFileSync(join(workspace, "notes/a.md"), "utf8"), "one\n$& 2\n<three>\n");
});
await check("exec", async () => {
  const result = await call("exec", exec("pwd; echo hi >&2"));
  assert.deepEqual(json(result), { output: workspace + "\nhi\n" });
  const failed = await call("exec", exec("exit 3"));
  assert.equal(failed.isError, true);
  assert.deepEqual(json(failed), { error: "Command failed with exit code 3.", code: "failed", exitCode: 3 });
});
await check("readImageFile", async () => {
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=", "base64");
  writeFileSync(join(workspace, "dot"), png);
  const result = await call("readImageFile", { path: "dot" });
  assert.deepEqual(result.structuredContent, { path: join(workspace, "dot"), mimeType: "image/png", size: png.length });
});
await check("readPdfFile", async () => {
  writeFileSync(join(workspace, "doc"), "%PDF-1.7\n%%EOF\n");
  const result = await call("readPdfFile", { path: "doc" });
  assert.deepEqual(result.structuredContent, { path: join(workspace, "doc"), mimeType: "application/pdf", size: 15 });
});
await check("todo, clearTodo, attemptCompletion", async () => {
  await call("todo", { newTodos: ["Plan", "Ship"], completedTodos: [0] });
  assert.deepEqual(json(await call("attemptCompletion")), { remainingTodos: [{ id: 1, title: "Ship", completed: false }] });
  assert.deepEqual(json(await call("clearTodo")), { todos: [] });
  assert.deepEqual(json(await call("attemptCompletion")), {});
});
await check("errors are results", async () => {
  const outside = await call("readTextFile", { path: "../secret" });
  assert.equal(outside.isError, true);
  assert.deepEqual(json(outside), { error: "../secret is outside the workspace.", code: "outside_workspace" });
  await assert.rejects(call("readTextfile"), (error) => error.code === -32602 && /Did you mean "readTextFile"/.test(error.message));
});
await check("progress", async () => {
  const seen = [];
  await call("exec", exec("echo first; sleep 0.6; echo last"), { onprogress: (p) => seen.push(p.message) });
  // The last report comes right before the result; this client drops it when both arrive in one read.
  assert.equal(seen[0], "first");
});
await check("abort kills the command", async () => {
  const abort = new AbortController();
  const pending = call("exec", exec("while echo beat >> beats; do sleep 0.05; done"), { signal: abort.signal });
  setTimeout(() => abort.abort(), 500);
  await assert.rejects(pending);
  const beats = () => readFileSync(join(workspace, "beats"), "utf8").length; // its process id may be its namespace's
  for (let i = 0; i < 20; i++) {
    const before = beats();
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (beats() === before) return;
  }
  assert.fail("the command goes on");
});
await check("40 calls at once", async () => {
  const results = await Promise.all(Array.from({ length: 40 }, (_, i) => call("exec", exec(`echo ${i}`))));
  results.forEach((result, i) => assert.deepEqual(json(result), { output: `${i}\n` }));
});
await client.close();
