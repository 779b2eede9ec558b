// The views in a real browser, shown by the library that hosts are made of, with results
// of the real binary and with hostile ones:
// node views.mjs BROWSER BINARY WORKSPACE [PICTURES], where PICTURES is a directory for
// one picture of each case.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Browser, until } from "./browser.mjs";
import { inspect } from "./views_inspect.mjs";
import { casesOf } from "./views_cases.mjs";
import { serve } from "./site.mjs";

const [program, binary, workspace, pictures] = process.argv.slice(2);
const type = "text/html;profile=mcp-app";

const client = new Client({ name: "e2e", version: "1" }, { capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [type] } } } });
await client.connect(new StdioClientTransport({ command: binary, args: ["serve", "--tools", "perstack,baseagent,terminal,skills", "--workspace", workspace], stderr: "inherit" }));
const site = await serve((uri) => client.readResource({ uri }));
const browser = await Browser.start(program);
const tools = new Map((await client.listTools()).tools.map((t) => [t.name, t]));

/** call has the binary do something, and returns what a host hands the view of the tool. */
async function call(name, input, options) {
  const result = await client.callTool({ name, arguments: input }, options);
  return { view: tools.get(name)._meta.ui.resourceUri.split("/").pop(), tool: tools.get(name), input, result };
}

await browser.send("Page.navigate", { url: site.host }, browser.page);
await until("the host's page", () => browser.run("window.ready_ === true").catch(() => false));

const themes = {
  light: { theme: "light" },
  dark: { theme: "dark", styles: { variables: { "--color-background-primary": "light-dark(#fff, #101418)", "--font-sans": "Georgia, serif", "--x": "url(https://evil.example/x)" }, css: { fonts: '@import url("https://evil.example/f.css"); @font-face{font-family:x;src:url(https://evil.example/f)}' } } },
};

/** show opens a view with what a case has, and returns its frame when it is drawn. */
async function show(c, look, width) {
  await browser.send("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: false }, browser.page);
  browser.requests.length = 0;
  const src = site.views + "/" + c.view;
  const context = { ...themes[look], displayMode: "inline", containerDimensions: { width, maxHeight: 6000 }, ...(c.tool && { toolInfo: { tool: c.tool } }) };
  await browser.run(`open_(${JSON.stringify({ src, width, context, resources: c.resources })})`);
  const frame = [...browser.frames.values()].findLast((f) => f.origin !== site.host && f.session !== browser.page);
  assert(frame, "the view has a frame of its own");
  for (const [does, what] of [["partial_", c.partial], ["input_", c.input], ["result_", c.result], ["cancelled_", c.cancelled]]) {
    if (what !== undefined) await browser.run(`${does}(${JSON.stringify(what)})`);
  }
  await until(c.name + ": " + c.want, async () => {
    const text = await browser.run("document.querySelector('main')?.innerText ?? ''", frame);
    return [c.want].flat().every((w) => (w instanceof RegExp ? w.test(text) : text.includes(w)));
  }).catch(async (e) => { throw new Error(e.message + "\n" + (await browser.run("document.querySelector('main').innerText.slice(0, 3000)", frame)) + browser.noise.join("\n")); });
  await until(c.name + ": its size", async () => {
    const { sizes } = await browser.run("seen_()");
    const real = await browser.run("[innerWidth, Math.ceil(document.documentElement.getBoundingClientRect().height)]", frame);
    return String(sizes.at(-1)) === String(real);
  });
  return [frame, src];
}

async function check(c, look, width) {
  const [frame, src] = await show(c, look, width);
  const found = await browser.run(`(${inspect})()`, frame);
  assert.deepEqual(found, [], `${c.name} (${look}, ${width})`);
  if (c.more) await c.more({ browser, frame, width, seen: () => browser.run("seen_()") });
  const { sent, asked } = await browser.run("seen_()");
  const usual = ["ui/initialize", "ui/notifications/initialized", "ui/notifications/size-changed", "resources/read", ""];
  assert.deepEqual(sent.filter((m) => !usual.includes(m)), [], c.name + ": what the view asks for");
  assert.deepEqual(asked, c.asks ?? [], c.name + ": what it reads");
  const foreign = browser.requests.filter((u) => u !== src && !u.startsWith("data:") && !u.startsWith(site.host + "/"));
  assert.deepEqual(foreign, [], c.name + ": requests leave it");
  assert.deepEqual(browser.noise, [], c.name + ": its console");
  if (pictures) {
    await mkdir(pictures, { recursive: true });
    const height = Math.min((await browser.run("seen_()")).height, 1600);
    await browser.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }, browser.page);
    const { data } = await browser.send("Page.captureScreenshot", { clip: { x: 0, y: 0, width, height, scale: 1 } }, browser.page);
    await writeFile(join(pictures, `${c.name.replaceAll(/\W+/g, "-")}-${look}.png`), Buffer.from(data, "base64"));
  }
  assert.deepEqual(await browser.run("close_()"), {}, c.name + ": its end");
}

try {
  for (const c of await casesOf(call, workspace)) {
    try {
      await check(c, "light", 900);
      await check(c, "dark", 340);
      console.log("ok " + c.view + ": " + c.name);
    } catch (e) {
      console.log("not ok " + c.view + ": " + c.name + "\n" + e.message);
      browser.noise.length = 0;
    }
  }
} finally {
  await browser.close();
  site.close();
  await client.close();
}
process.exit(0);
