// A browser, driven over its debugging protocol: start one, open a page in it, and see
// all that the page and its frames say, load and throw.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const deadline = Number(process.env.E2E_DEADLINE_MS ?? 60_000);

/** until waits for a condition to hold. */
export async function until(what, holds) {
  for (const end = Date.now() + deadline; ;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error("waited in vain for " + what);
    await new Promise((r) => setTimeout(r, 10));
  }
}

export class Browser {
  #socket; #process; #dir; #last = 0; #waiting = new Map();
  frames = new Map(); // frame id -> { session, context }
  noise = []; // what was said in frames, and thrown anywhere
  requests = []; // what was loaded

  static async start(program) {
    const b = new Browser();
    b.#dir = await mkdtemp(join(tmpdir(), "perstack-base-browser-"));
    b.#process = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--site-per-process", "--remote-debugging-port=0", "--user-data-dir=" + b.#dir, "about:blank"],
    { stdio: "ignore", env: { ...process.env, HOME: b.#dir } });
    process.once("exit", () => b.#process.kill("SIGKILL")); // also when the test breaks off
    const [port, path] = (await until("the browser", () => readFile(join(b.#dir, "DevToolsActivePort"), "utf8").catch(() => ""))).split("\n");
    b.#socket = new WebSocket(`ws://127.0.0.1:${port}${path}`);
    await new Promise((resolve, reject) => { b.#socket.onopen = resolve; b.#socket.onerror = reject; });
    b.#socket.onmessage = (e) => b.#heard(JSON.parse(e.data));
    const { targetInfos } = await b.send("Target.getTargets");
    const { sessionId } = await b.send("Target.attachToTarget", { targetId: targetInfos.find((t) => t.type === "page").targetId, flatten: true });
    b.page = sessionId;
    await b.#watch(sessionId);
    return b;
  }

  async close() {
    this.#process.kill("SIGKILL");
    await new Promise((r) => (this.#process.exitCode === null && this.#process.signalCode === null ? this.#process.once("exit", r) : r()));
    await rm(this.#dir, { recursive: true, force: true, maxRetries: 10 });
  }

  send(method, params = {}, sessionId) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(++this.#last, { resolve, reject });
      this.#socket.send(JSON.stringify({ id: this.#last, method, params, sessionId }));
    });
  }

  async #watch(session) {
    for (const domain of ["Runtime", "Log", "Network", "Page"]) await this.send(domain + ".enable", {}, session);
    await this.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: true }, session);
  }

  #heard(m) {
    const w = this.#waiting.get(m.id);
    this.#waiting.delete(m.id);
    if (w) return m.error ? w.reject(new Error(m.error.message)) : w.resolve(m.result);
    const p = m.params;
    switch (m.method) {
      case "Target.attachedToTarget":
        this.#watch(p.sessionId).then(() => this.send("Runtime.runIfWaitingForDebugger", {}, p.sessionId)).catch(() => {});
        break;
      case "Runtime.executionContextCreated":
        if (p.context.auxData?.isDefault) this.frames.set(p.context.auxData.frameId, { session: m.sessionId, context: p.context.id, origin: p.context.origin });
        break;
      case "Runtime.consoleAPICalled": if (m.sessionId !== this.page) this.noise.push("console: " + p.args.map((a) => a.value ?? a.description).join(" ")); break;
      case "Runtime.exceptionThrown": this.noise.push("thrown: " + (p.exceptionDetails.exception?.description ?? p.exceptionDetails.text)); break;
      case "Log.entryAdded": this.noise.push("log: " + p.entry.text + " " + (p.entry.url ?? "")); break;
      case "Network.requestWillBeSent": this.requests.push(p.request.url); break;
      case "Page.javascriptDialogOpening":
        this.noise.push("dialog: " + p.message);
        this.send("Page.handleJavaScriptDialog", { accept: false }, m.sessionId).catch(() => {});
        break;
    }
  }

  /** run evaluates an expression in the page, or in a frame. */
  async run(expression, frame) {
    const where = frame ? { contextId: frame.context } : {};
    const r = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true, ...where }, frame?.session ?? this.page);
    if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
    return r.result.value;
  }
}
