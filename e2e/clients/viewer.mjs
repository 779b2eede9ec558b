// A host that shows views: the real binary, the real library, a real browser.
import { writeFile } from "node:fs/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";
import { Browser, until } from "./browser.mjs";
import { serve } from "./site.mjs";

const type = "text/html;profile=mcp-app";
const tallest = 1600; // of a picture

export class Viewer {
  static async start(program, binary, workspace) {
    const v = new Viewer();
    v.client = new Client({ name: "e2e", version: "1" }, { capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [type] } } } });
    await v.client.connect(new StdioClientTransport({ command: binary, args: ["serve", "--tools", "perstack,baseagent,terminal,skills", "--workspace", workspace], stderr: "inherit" }));
    v.tools = new Map((await v.client.listTools()).tools.map((t) => [t.name, t]));
    v.site = await serve((uri) => v.client.readResource({ uri }));
    v.browser = await Browser.start(program);
    await v.browser.send("Page.navigate", { url: v.site.host }, v.browser.page);
    await until("the host's page", () => v.browser.run("window.ready_ === true").catch(() => false));
    return v;
  }

  async close() {
    await this.browser.close();
    this.site.close();
    await this.client.close();
  }

  /** call has the binary do something, and returns what a host hands the view of the tool. */
  async call(name, input) {
    const result = await this.client.callTool({ name, arguments: input });
    return { view: getToolUiResourceUri(this.tools.get(name)).split("/").pop(), tool: this.tools.get(name), input, result };
  }

  seen() { return this.browser.run("seen_()"); }

  #resize(width, height) {
    return this.browser.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }, this.browser.page);
  }

  /** show opens a view with what a case has, directly or by way of a proxy, and returns its frame when it is drawn. */
  async show(c, look, width, proxied = false) {
    const { browser } = this;
    await this.#resize(width, 800);
    browser.requests.length = 0;
    const src = this.site.views + "/" + (proxied ? "proxy" : c.view);
    const html = proxied ? (await this.client.readResource({ uri: "ui://perstack-base/" + c.view })).contents[0].text : undefined;
    const context = { ...look, displayMode: "inline", containerDimensions: { width, maxHeight: 6000 }, ...(c.tool && { toolInfo: { tool: c.tool } }) };
    await browser.run(`open_(${JSON.stringify({ src, html, width, context, resources: c.resources })})`);
    const frame = [...browser.frames.values()].findLast((f) => f.session !== browser.page);
    for (const [does, what] of [["partial_", c.partial], ["input_", c.input], ["result_", c.result], ["cancelled_", c.cancelled]]) {
      if (what !== undefined) await browser.run(`${does}(${JSON.stringify(what)})`);
    }
    const text = () => browser.run("document.querySelector('main')?.innerText ?? ''", frame);
    await until(c.name + ": " + c.want, async () => {
      const now = await text();
      return [c.want].flat().every((w) => (w instanceof RegExp ? w.test(now) : now.includes(w)));
    }).catch(async (e) => { throw new Error([e.message, (await text()).slice(0, 3000), ...browser.noise].join("\n")); });
    await until(c.name + ": its size", async () => {
      const { sizes } = await this.seen();
      const real = await browser.run("[innerWidth, Math.ceil(document.documentElement.getBoundingClientRect().height)]", frame);
      return String(sizes.at(-1)) === String(real);
    });
    return [frame, src];
  }

  /** picture writes what is shown into a file. */
  async picture(path, width) {
    const height = Math.min((await this.seen()).height, tallest);
    await this.#resize(width, height);
    const { data } = await this.browser.send("Page.captureScreenshot", { clip: { x: 0, y: 0, width, height, scale: 1 } }, this.browser.page);
    await writeFile(path, Buffer.from(data, "base64"));
  }
}
