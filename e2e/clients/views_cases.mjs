// What the views are shown with. Where the binary can make it, it has made it.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

const million = 1 << 20;

// hostile is what a file, a name or an output may hold.
export const hostile = '<script>window.pwned=1;alert(1)</script><img src=x onerror="window.pwned=1"><svg onload=alert(1)><a href="javascript:alert(1)">x</a>' +
  "</pre></main><iframe src=https://evil.example></iframe>{{script}}\" onmouseover=alert(1) '\u202egnp.exe\u2066\u200b\u{e0041}\ufeff\0\x07\x08\x7f\x85" +
  "\x1b]0;title\x07\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\x1b[2J\x1b[1;1H\x1b[8mconceal\x1b[0m\x1b[30;40mblack\x1b[0m\x1b[38;2;255;255;255mwhite\x1b[0m\x1b[37;47mgrey\x1b[0m\x1b[7;48;2;255;255;255mreversed\x1b[0m\x1b[7;48;2;16;20;24mreversed\x1b[0m\x1b[7;48;2;27;27;29mreversed\x1b[0m\rover" +
  "\u{1d173}\u{1bca0}over" + "\u0300\u0489".repeat(40) + "under";
const survives = ["<script>window.pwned=1;alert(1)</script>", '<img src=x onerror="window.pwned=1">', "{{script}}", "[U+202E]gnp.exe", "^@", "[U+E0041]", "[U+1D173]", "[U+0489]"];

const text = (t, rest = {}) => ({ content: [{ type: "text", text: t }], ...rest });

// png is a small picture, made here.
function png() {
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    let crc = ~0;
    for (const b of body) { crc ^= b; for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0); }
    const out = Buffer.alloc(12 + data.length);
    out.writeUInt32BE(data.length, 0); body.copy(out, 4); out.writeUInt32BE(~crc >>> 0, 8 + data.length);
    return out;
  };
  const head = Buffer.alloc(13), size = [240, 120];
  head.writeUInt32BE(size[0], 0); head.writeUInt32BE(size[1], 4); head.set([8, 2], 8);
  const rows = [];
  for (let y = 0; y < size[1]; y++) {
    rows.push(Buffer.from([0]));
    for (let x = 0; x < size[0]; x++) rows.push(Buffer.from(119 - y < (x % 40 < 28 ? [30, 52, 45, 80, 72, 104][Math.floor(x / 40)] : 0) ? [26, 95, 180] : [238, 241, 246]));
  }
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", head), chunk("IDAT", deflateSync(Buffer.concat(rows))), chunk("IEND", Buffer.alloc(0))]);
}

const go = `package main

import (
	"fmt"
	"os"
)

// main greets whoever is named.
func main() {
	name := os.Args[1]
	fmt.Println("Hello, " + name)
}

func unused() {
	fmt.Println("nobody calls this")
}
`;

async function plans(call) {
  const waiting = { name: "waiting", view: "plan", want: "Waiting for the plan" };
  const coming = { name: "coming", view: "plan", partial: { newTodos: ["Read the issue", "Wri"] }, want: ["as it is being made", "Read the issue", "Wri"] };
  await call("todo", { newTodos: ["Read the issue and the code around it", "Write a test that fails", "Make the parser accept empty lines"], completedTodos: [0] });
  const todo = await call("todo", { newTodos: ["Tell of it in the changelog"], completedTodos: [1] });
  const open = await call("attemptCompletion", {});
  await call("todo", { completedTodos: [2, 3] });
  const done = await call("attemptCompletion", {});
  const cleared = await call("clearTodo", {});
  await call("update_plan", { steps: [{ description: "Find the cause", status: "in_progress" }, { description: "Ask the user", status: "pending" }] });
  const plan = await call("update_plan", { steps: [{ description: "Find the cause", status: "completed" }, { description: "Mend it", status: "in_progress" }, { description: "Run the tests", status: "pending" }], explanation: "The cause is known." });
  const wrong = await call("update_plan", { steps: [{ description: " ", status: "pending" }] });
  await call("clearTodo", {});
  const many = await call("todo", { newTodos: Array.from({ length: 1600 }, (_, i) => `Step ${i}: ` + "word ".repeat(i % 9)) });
  await call("clearTodo", {});
  const evil = await call("todo", { newTodos: [hostile, hostile.repeat(30), "\u202e"], completedTodos: [99] });
  await call("clearTodo", {});
  const size = { name: "a line of 1 MB", view: "plan", input: { steps: [{ description: "x".repeat(million), status: "pending" }] }, result: text("Plan updated"), want: "more character" };
  return [
    waiting, coming,
    { name: "todo", ...todo, want: ["Plan", "2 of 4 steps done", "Write a test that fails", /done now/, /Tell of it in the changelog[^]*new/] },
    { name: "attempt with open steps", ...open, want: ["Not complete: 2 steps are still open", "2 of 4 steps done"] },
    { name: "attempt when done", ...done, want: ["Complete", "4 of 4 steps done"] },
    { name: "cleared", ...cleared, want: ["The list is empty", "4 steps removed"] },
    { name: "update_plan", ...plan, proxied: true, want: ["Mend it", "The cause is known", "1 step removed", "done now"], more: async ({ browser, frame }) => {
      assert.equal(await browser.run("document.querySelector('[role=progressbar]').ariaValueNow", frame), "1");
      assert.match(await browser.run("document.getElementById('said').textContent", frame), /1 of 3 steps done/);
      await browser.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "reduce" }] }, frame.session);
      assert.equal(await browser.run("getComputedStyle(document.querySelector('.fill')).transitionProperty", frame), "none");
      await browser.send("Emulation.setEmulatedMedia", { features: [] }, frame.session);
    } },
    { name: "refused plan", ...wrong, want: "must not be blank" },
    { name: "many steps", ...many, want: ["0 of 1,600 steps done", "Step 99", "Show more: 1,500 steps"], more: async ({ browser, frame }) => {
      await browser.run("document.querySelector('button').click()", frame);
      assert.equal(await browser.run("document.querySelectorAll('li').length", frame), 200);
    } },
    { name: "hostile steps", ...evil, want: [...survives, "no step with the id 99"] },
    size,
    { name: "cancelled", view: "plan", input: { newTodos: ["a"] }, cancelled: "The user " + hostile, want: ["Cancelled", ...survives] },
    { name: "nonsense", view: "plan", input: { newTodos: 5, steps: { length: 9 } }, result: { content: [{ type: "text", text: "{\"todos\":[null,7,{\"title\":{}}]}" }], structuredContent: { todos: [null, 7, { title: {} }] } }, want: "0 of 3 steps done" },
  ];
}

async function diffs(call, workspace) {
  const made = await call("writeTextFile", { path: "main.go", text: go });
  const edited = await call("editTextFile", { path: "main.go", oldText: '"Hello, " + name', newText: '"Good morning, " + name + "!"' });
  await call("write_file", { file_path: "old/name.txt", content: "one\ntwo\nthree\n" });
  await call("write_file", { file_path: "gone.txt", content: "to be deleted\n" });
  const patch = `*** Begin Patch
*** Update File: main.go
@@ func main() {
-	name := os.Args[1]
+	name := "world"
+	if len(os.Args) > 1 {
+		name = os.Args[1]
+	}
@@
-func unused() {
-	fmt.Println("nobody calls this")
-}
*** Update File: old/name.txt
*** Move to: new/name.txt
@@
 one
-two
+zwei
*** Delete File: gone.txt
*** Add File: docs/notes.md
+# Notes
+
+Names come from the command line.
*** End Patch`;
  const patched = await call("apply_patch", { patch });
  const failed = await call("editTextFile", { path: "main.go", oldText: "not there", newText: "x" });
  const same = await call("writeTextFile", { path: "docs/notes.md", text: "# Notes\n\nNames come from the command line.\n" });
  const lines = Array.from({ length: 6000 }, (_, i) => "line " + i).join("\n") + "\n";
  await call("write_file", { file_path: "large.txt", content: lines });
  const large = await call("write_file", { file_path: "large.txt", content: lines.replaceAll(/line (\d*[05])\n/g, "changed $1\n") });
  const evil = await call("write_file", { file_path: "a <img src=x onerror=alert(1)> \u202egpj.b", content: hostile.replace("\0", "") + "\n--- a/x\n+++ b/x\n@@ -1 +1 @@\ndiff --git a/q b/q\n" + "y".repeat(million) + "\n" });
  await writeFile(join(workspace, "binary"), Buffer.from([0, 1, 2]));
  const binary = await call("write_file", { file_path: "binary", content: "text now\n" });
  return [
    { name: "waiting", view: "diff", want: "Waiting for the change" },
    { name: "coming", view: "diff", partial: { patch: patch.slice(0, 150) }, want: ["as it is being written", "main.go", 'name := "world"'] },
    { name: "about to edit", view: "diff", input: { path: "a.txt", oldText: "before", newText: "after" }, want: ["About to change", "a.txt", "before", "after"] },
    { name: "about to write", view: "diff", input: { path: "a.txt", data: "x\n", start_line: 3, end_line: 4 }, want: ["Lines 3 to 4 are replaced."] },
    { name: "new file", ...made, want: ["1 file changed", "added", "main.go", "+16", "package main"] },
    { name: "edit", ...edited, want: ["1 file changed", "changed", "Good morning", "+1", "\u22121", "7 unchanged lines"], more: async ({ browser, frame }) => {
      assert.deepEqual(await browser.run("[...document.querySelectorAll('.word')].map((n) => n.textContent)", frame), ["Hello", "Good morning", " + \"!\""].filter(Boolean));
      assert.deepEqual(await browser.run("[...document.querySelectorAll('.del .no, .add .no')].map((n) => n.textContent)", frame), ["11", "", "", "11"]);
    } },
    { name: "patch", ...patched, want: ["4 files changed", "renamed", "old/name.txt", "new/name.txt", "deleted", "gone.txt", "docs/notes.md", "zwei"], more: keyboard },
    { name: "refused", ...failed, want: ["Nothing was changed", "does not occur", "not there"] },
    { name: "unchanged", ...same, want: "Nothing had to be changed" },
    { name: "large", ...large, want: ["large.txt", "changed 0", "Show more"], more: async ({ browser, frame }) => {
      assert(await browser.run("document.querySelector('.scroll').clientHeight <= 520 && document.querySelectorAll('tr').length <= 1001", frame));
    } },
    { name: "hostile file", ...evil, want: ["1 file changed", "a <img src=x onerror=alert(1)> [U+202E]gpj.b", ...survives.filter((s) => s !== "^@"), "+++ b/x", "1048576 bytes"] },
    { name: "hostile input", view: "diff", input: { path: hostile, text: (hostile + "\n").repeat(300) + "z".repeat(million) }, want: [...survives, "About to change"] },
    { name: "hostile diff", view: "diff", proxied: true, input: {}, result: text("x", { _meta: { "perstack-base/diff": "diff --git " + hostile + "\n@@ -1,99999999 +1,99999999 @@\n" + ("-" + hostile + "\n+" + hostile + "!\n").repeat(200) } }), want: survives },
    { name: "binary file", ...binary, want: "A binary file." },
    { name: "no diff in the result", view: "diff", input: { file_path: "b.txt", content: "x\n" }, result: text("Wrote 2 bytes to b.txt"), want: ["1 file changed", "written", "b.txt"] },
    { name: "cancelled", view: "diff", input: { path: "b.txt", text: "x" }, cancelled: "Too late.", want: ["Cancelled", "Too late."] },
  ];
}

// keyboard: Tab reaches a file, Enter folds it, and the size follows.
async function keyboard({ browser, frame, seen }) {
  const key = async (name, code, text) => {
    for (const type of [text ? "keyDown" : "rawKeyDown", "keyUp"]) await browser.send("Input.dispatchKeyEvent", { type, key: name, code: name, windowsVirtualKeyCode: code, ...(type === "keyDown" && { text }) }, browser.page);
  };
  const before = (await seen()).height;
  for (let i = 0; i < 3 && (await browser.run("document.activeElement?.localName", frame)) !== "summary"; i++) await key("Tab", 9);
  assert.equal(await browser.run("document.activeElement.localName", frame), "summary");
  await key("Enter", 13, "\r");
  for (let i = 0; (await seen()).height >= before; i++) {
    assert(i < 1000, "folding a file makes the view smaller");
    await new Promise((r) => setTimeout(r, 10));
  }
  assert.equal(await browser.run("document.querySelector('details').open", frame), false);
  await browser.run("document.querySelector('details').open = true", frame);
}

async function runs(call, workspace) {
  await mkdir(join(workspace, "skills/charts/scripts"), { recursive: true });
  await writeFile(join(workspace, "skills/charts/SKILL.md"), "---\nname: charts\ndescription: Draws charts.\n---\nRun scripts/draw.sh.\n");
  await writeFile(join(workspace, "skills/charts/scripts/draw.sh"), `echo drawing; echo ${png().toString("base64")} | base64 -d > $OUTPUT_DIR/chart.png; printf '\\211PNG\\r\\n\\032\\nbroken' > $OUTPUT_DIR/fake.png; echo notes > $OUTPUT_DIR/notes.txt\n`);
  const sh = (line) => ({ command: "sh", args: ["-c", line], env: {}, cwd: "", stdout: true, stderr: true });
  const passed = await call("exec", sh("printf '\\033[1mrunning 3 tests\\033[0m\\n\\033[32mok\\033[0m   parse\\n\\033[32mok\\033[0m   render\\n\\033[31mFAIL\\033[0m format: \\033[38;5;208mwant\\033[0m \\033[7m4\\033[0m, got \\033[41m 5 \\033[0m\\n'"));
  const failed = await call("exec", sh("echo before; echo broken >&2; exit 3"));
  const slow = await call("exec", { ...sh("echo begun; sleep 60"), timeout: 300 });
  const none = await call("exec", { command: "no-such-program", args: [], env: {}, cwd: "", stdout: true, stderr: true });
  const silent = await call("shell_command", { command: "true", workdir: "skills" });
  const refused = await call("shell_command", { command: "ls /root; touch /etc/hosts" });
  const tty = await call("exec_command", { cmd: "printf 'plain \\033[1;32mgreen\\033[0m \\033[31mred\\rR\\033[0m\\n'", tty: true });
  const dev = await call("exec_command", { cmd: "echo ready; cat", yield_time_ms: 250 });
  const look = await call("write_stdin", { session_id: dev.result.structuredContent.session_id, chars: "hello\n" });
  const end = await call("kill_session", { session_id: dev.result.structuredContent.session_id });
  const drawn = await call("skill_run", { skill: "charts", command: "sh scripts/draw.sh", output_files: ["out/*"], save_as_artifacts: true, omit_inline_content: true });
  const evil = await call("shell_command", { command: "cat hostile", workdir: "." }, (await writeFile(join(workspace, "hostile"), hostile + "\n" + hostile), undefined));
  const lines = await call("exec", sh("seq 1 30000"));
  const saved = drawn.result.structuredContent.artifact_files.map((f) => f.uri).filter((u) => u.includes(".png"));
  assert.equal(saved.length, 2);
  const loud = "\x1b[31m\x1b[1m".repeat(20000) + ("a\0\x1b[32m").repeat(20000) + "x".repeat(million) + "\nthe end";
  return [
    { name: "waiting", view: "terminal", want: "Waiting for the command" },
    { name: "running", view: "terminal", input: { command: "make", args: ["all", "it's"], cwd: "src" }, want: ["$ make all 'it'\\''s'", "running", "src"] },
    { name: "coloured output", ...passed, want: ["running 3 tests", "exit code 0", "FAIL", /\d ms|\d s/], more: async ({ browser, frame }) => {
      const colours = await browser.run("[...document.querySelectorAll('.out span')].map((s) => getComputedStyle(s).color)", frame);
      assert(new Set(colours).size >= 4, String(colours));
      assert.equal(await browser.run("document.querySelector('.out').textContent.includes('^[')", frame), false);
    } },
    { name: "failed command", ...failed, want: ["exit code 3", "before", "broken", "Standard error"] },
    { name: "timed out", ...slow, want: ["timed out", "begun", "Command timed out after 300ms."] },
    { name: "not run", ...none, want: ["not run", "no-such-program"] },
    { name: "no output", ...silent, want: ["exit code 0", "(no output)"] },
    { name: "refused by the sandbox", ...refused, want: ["What the sandbox did not permit, and how to permit it", "--allow-", "/root"] },
    { name: "on a terminal", ...tty, want: ["exit code 0", "Rlain green red"], more: async ({ browser, frame }) => {
      assert.equal(tty.result.structuredContent.output, "Rlain green red\n");
      assert.deepEqual(await browser.run("[...document.querySelectorAll('.out span')].filter((s) => s.style.color).map((s) => [s.textContent, s.style.color])", frame), [["R", "var(--c1)"], ["green", "var(--c2)"], ["red", "var(--c1)"]]);
    } },
    { name: "still running", ...dev, want: ["still running", "ready", "It waits for input"] },
    { name: "typing", ...look, want: ["type \"hello\\n\"", "hello"] },
    { name: "ended", ...end, want: ["end it", "ended by"] },
    { name: "pictures", ...drawn, proxied: true, asks: saved, want: ["drawing", "chart.png", "notes.txt", "exit code 0", "This picture cannot be shown"], more: async ({ browser, frame }) => {
      assert.deepEqual(await browser.run("[...document.images].map((i) => [i.alt, i.naturalWidth])", frame), [["out/chart.png", 240]]);
    } },
    { name: "pictures that the client does not hand over", ...drawn, resources: false, want: ["chart.png", "image/png"] },
    { name: "hostile output", ...evil, want: [...survives, "conceal", "black", "white", "grey", "over"] },
    { name: "hostile command", view: "terminal", input: { command: hostile, args: [hostile], cwd: hostile }, result: text(JSON.stringify({ error: hostile, hint: hostile, stdout: hostile }), { isError: true, _meta: { "perstack-base/run": { exitCode: 1, durationMs: 5, refused: [hostile] } } }), want: survives },
    { name: "hostile files", view: "terminal", input: { skill: hostile, command: "x" }, result: text("", { structuredContent: { stdout: "", stderr: "", exit_code: 0, output_files: [{ name: hostile, mime_type: "image/png" }, { name: "s.svg", mime_type: "image/svg+xml" }], artifact_files: [{ name: hostile, uri: "https://evil.example/x.png" }, { name: "s.svg", uri: "artifact://s.svg" }] } }), want: survives },
    { name: "many lines", ...lines, want: ["1\n2\n3", "30000"], more: async ({ browser, frame }) => assert(await browser.run("document.querySelector('.out').clientHeight <= 480", frame)) },
    { name: "a line of 1 MB and much colour", view: "terminal", input: { cmd: "cat" }, result: text("", { structuredContent: { status: "exited", session_id: "c1", exit_code: 0, output: loud, duration_ms: 65000 } }), want: ["are not shown here", "the end", "1 min 5 s"] },
    { name: "cancelled", view: "terminal", input: { cmd: "sleep 9" }, cancelled: "", want: ["cancelled", "Cancelled."] },
  ];
}

/** casesOf returns all cases; call has the binary do something. */
export async function casesOf(call, workspace) {
  return [...(await plans(call)), ...(await diffs(call, workspace)), ...(await runs(call, workspace))];
}
