// The web pages of a host of MCP Apps: the page with the host's half, made of the real
// library, and on another origin the views, served as the specification has it.
import { createServer } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// find returns the file that a browser gets for a package's name.
function find(name, from) {
  const [scope, first, ...rest] = name.split("/");
  const [pkg, sub] = name.startsWith("@") ? [scope + "/" + first, rest] : [scope, [first, ...rest].filter((p) => p !== undefined)];
  for (let dir = from; ; dir = dirname(dir)) {
    const root = join(dir, "node_modules", pkg);
    if (!existsSync(join(root, "package.json"))) {
      if (dir === dirname(dir)) throw new Error(name + " is not installed");
      continue;
    }
    const about = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    let entry = about.exports?.[sub.length ? "./" + sub.join("/") : "."] ?? about.module ?? about.main ?? join(...sub, "index.js");
    while (typeof entry === "object") entry = entry.browser ?? entry.import ?? entry.default;
    return join(root, entry);
  }
}

const bare = /\b(from|import)\s*(["'])(?![./])([^"']+)\2/g;
function script(path) {
  const text = readFileSync(path, "utf8");
  return text.replace(bare, (_, word, quote, name) => word + quote + "/" + relative(here, find(name, dirname(path))) + quote);
}

// policy is the header that the specification has hosts make of what a view declares.
function policy(csp = {}) {
  const of = (key) => (csp[key] ?? []).join(" ");
  return `default-src 'none'; script-src 'self' 'unsafe-inline' ${of("resourceDomains")}; style-src 'self' 'unsafe-inline' ${of("resourceDomains")}; ` +
    `connect-src 'self' ${of("connectDomains")}; img-src 'self' data: ${of("resourceDomains")}; font-src 'self' ${of("resourceDomains")}; ` +
    `media-src 'self' data:; frame-src ${of("frameDomains") || "'none'"}; object-src 'none'; base-uri ${of("baseUriDomains") || "'self'"}`;
}

// proxy is the frame that hosts on the web put between themselves and a view, in which
// the view is a document without an address.
const proxy = `<!DOCTYPE html><body style="margin:0"><script>
const inner = document.createElement("iframe");
inner.style.cssText = "border:0;display:block;width:100%;height:6000px";
addEventListener("message", ({ source, data }) => {
  if (source === inner.contentWindow) return parent.postMessage(data, "*");
  if (data.method !== "ui/notifications/sandbox-resource-ready") return inner.contentWindow.postMessage(data, "*");
  inner.sandbox = data.params.sandbox;
  inner.srcdoc = data.params.html;
  document.body.append(inner);
});
parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} }, "*");
</script>`;

/** serve serves the host's page, and the views, which read hands over as resources. */
export async function serve(read) {
  const listen = (answer) => new Promise((resolve) => {
    const s = createServer((req, res) => answer(new URL(req.url, "http://x"), res).catch((e) => { res.writeHead(500); res.end(String(e)); }));
    s.listen(0, "127.0.0.1", () => resolve(s));
  });
  const send = (res, type, body, headers = {}) => { res.writeHead(200, { "Content-Type": type, ...headers }); res.end(body); };
  const host = await listen(async (url, res) => {
    if (url.pathname === "/") return send(res, "text/html", '<!DOCTYPE html><link rel="icon" href="data:,"><body style="margin:0"><script type="module" src="/host_page.mjs"></script>');
    if (url.pathname === "/resource") return send(res, "application/json", JSON.stringify(await read(url.searchParams.get("uri"))));
    send(res, "text/javascript", script(join(here, decodeURIComponent(url.pathname))));
  });
  const views = await listen(async (url, res) => {
    if (url.pathname === "/proxy") return send(res, "text/html", proxy, { "Content-Security-Policy": policy({ frameDomains: ["'self'"] }) });
    const { contents: [c] } = await read("ui://perstack-base" + url.pathname);
    send(res, "text/html; charset=utf-8", c.text, { "Content-Security-Policy": policy(c._meta.ui.csp) });
  });
  const at = (s) => "http://localhost:" + s.address().port;
  return { host: at(host), views: at(views).replace("localhost", "127.0.0.1"), close: () => { host.close(); views.close(); host.closeAllConnections(); views.closeAllConnections(); } };
}
