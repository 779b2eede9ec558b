// The views in a real browser, shown by the library that hosts are made of, with results
// of the real binary and with hostile ones, each on wide and light and on narrow and dark:
// node views.mjs BROWSER BINARY WORKSPACE [PICTURES], where PICTURES is a directory for
// pictures of all of it.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { casesOf } from "./views_cases.mjs";
import { inspect } from "./views_inspect.mjs";
import { Viewer } from "./viewer.mjs";

const [program, binary, workspace, pictures] = process.argv.slice(2);
const viewer = await Viewer.start(program, binary, workspace);
const { browser } = viewer;

const light = { theme: "light" };
const dark = { // with colours and fonts of its own, and with some that would load something
  theme: "dark",
  styles: {
    variables: { "--color-background-primary": "light-dark(#fff, #101418)", "--font-sans": "Georgia, serif", "--x": "url(https://evil.example/x)" },
    css: { fonts: '@import url("https://evil.example/f.css"); @font-face{font-family:x;src:url(https://evil.example/f)}' },
  },
};

const usual = ["ui/initialize", "ui/notifications/initialized", "ui/notifications/size-changed", "resources/read", ""];

async function check(c, look, width, proxied = false) {
  const [frame, src] = await viewer.show(c, look, width, proxied);
  const which = `${c.name} (${look.theme}, ${width}${proxied ? ", by a proxy" : ""})`;
  assert.deepEqual(await browser.run(`(${inspect})()`, frame), [], which);
  if (c.more && !proxied) await c.more({ browser, frame, width, seen: () => viewer.seen() });
  const { sent, asked } = await viewer.seen();
  assert.deepEqual(sent.filter((m) => !usual.includes(m) && !(proxied && m === "ui/notifications/sandbox-proxy-ready")), [], which + ": what the view asks for");
  assert.deepEqual(asked, c.asks ?? [], which + ": what it reads");
  assert.deepEqual(browser.requests.filter((u) => u !== src && !u.startsWith("data:") && !u.startsWith(viewer.site.host + "/")), [], which + ": requests leave it");
  assert.deepEqual(browser.noise.filter((n) => !n.endsWith("/host_page.mjs")), [], which + ": its console"); // not what is said of the host
  if (look === dark) {
    assert.equal(await browser.run("getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).fontFamily", frame), "rgb(16, 20, 24)Georgia, serif", which);
    // The client may change its mind.
    await browser.run(`context_(${JSON.stringify({ ...dark, theme: "light" })})`);
    for (let i = 0; (await browser.run("getComputedStyle(document.body).backgroundColor", frame)) !== "rgb(255, 255, 255)"; i++) assert(i < 3000, which + ": a new theme");
    await browser.run(`context_(${JSON.stringify(dark)})`);
  }
  if (pictures && !proxied) await viewer.picture(join(pictures, `${c.view}-${c.name.replaceAll(/\W+/g, "-")}-${look.theme}.png`), width);
  assert.deepEqual(await browser.run("close_()"), {}, which + ": its end");
}

try {
  if (pictures) await mkdir(pictures, { recursive: true });
  for (const c of await casesOf((name, input) => viewer.call(name, input), workspace)) {
    try {
      await check(c, light, 900);
      await check(c, dark, 340);
      if (c.proxied) await check(c, light, 600, true);
      console.log("ok " + c.view + ": " + c.name);
    } catch (e) {
      console.log("not ok " + c.view + ": " + c.name + "\n" + e.message);
      browser.noise.length = 0;
    }
  }
} finally {
  await viewer.close();
}
process.exit(0);
