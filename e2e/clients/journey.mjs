// What every client does over every connection; client is one of the official
// SDK, call(name, args, options) its way to run a tool.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

const exec = (line) => ({ command: "sh", args: ["-c", line], env: {}, cwd: "", stdout: true, stderr: true });

export const journey = async (client, call, workspace) => {
  const check = async (name, fn) => { await fn(); console.log("ok", name); };
  await check("list", async () => {
    const { tools } = await client.listTools();
    assert.equal(tools.length, 9);
  });
  await check("structuredContent", async () => {
    const result = await call("writeTextFile", { path: "a.md", text: "<one>\n" });
    assert.deepEqual(result.structuredContent, { path: join(workspace, "a.md"), text: "<one>\n" });
  });
  await check("isError without a throw", async () => {
    const result = await call("readTextFile", { path: "../secret" });
    assert.equal(result.isError, true);
    assert.equal(JSON.parse(result.content[0].text).code, "outside_workspace");
  });
  await check("unknown tool", () => assert.rejects(call("readTextfile", {}), (e) => e.code === -32602 && /Did you mean "readTextFile"/.test(e.message)));
  await check("progress", async () => {
    const seen = [];
    await call("exec", exec("echo first; sleep 1.5; echo last"), { onprogress: (p) => seen.push(p.message) });
    assert.ok(seen.includes("first"), `no progress says "first": ${seen}`); // a busy machine tells first how long it runs
  });
  await check("abort kills the command", async () => {
    const file = join(workspace, "beats");
    rmSync(file, { force: true });
    const abort = new AbortController();
    const pending = call("exec", exec("while echo beat >> beats; do sleep 0.05; done"), { signal: abort.signal });
    await written(file);
    abort.abort();
    await assert.rejects(pending);
    await still(file);
  });
  await check("40 calls at once", async () => {
    const results = await Promise.all(Array.from({ length: 40 }, (_, i) => call("exec", exec(`echo ${i}`))));
    results.forEach((r, i) => assert.equal(r.structuredContent.output, `${i}\n`));
  });
};

const pause = (ms = 10) => new Promise((resolve) => setTimeout(resolve, ms));

const written = async (path) => {
  for (let i = 0; i < 1000; i++) {
    try {
      if (readFileSync(path, "utf8").length > 0) return;
    } catch {}
    await pause();
  }
  assert.fail("the command never ran");
};

// still waits until nobody writes a file any more: a process id may be its namespace's.
const still = async (path) => {
  for (let i = 0; i < 20; i++) {
    const before = readFileSync(path, "utf8").length;
    await pause(500);
    if (readFileSync(path, "utf8").length === before) return;
  }
  assert.fail("the command goes on");
};
