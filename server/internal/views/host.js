// The protocol between a view and the client that shows it, of MCP Apps (2026-01-26),
// and what all views need to put text on the page. Every text comes from files,
// commands and models, and is hostile: it becomes text nodes and nothing else.

const root = document.documentElement, main = document.querySelector("main");
const waiting = new Map();
let asked = 0, context = {}, able = {};

const post = (m) => parent.postMessage({ jsonrpc: "2.0", ...m }, "*");
const tell = (method, params = {}) => post({ method, params });
const ask = (method, params) => new Promise((resolve, reject) => {
  waiting.set(++asked, { resolve, reject });
  post({ id: asked, method, params });
});

// What the view knows of its call. draw shows it; each view defines its own.
const call = { input: null, partial: null, result: null, cancelled: null };
let drawing = 0;
const redraw = (wait = 0) => {
  if (drawing && wait) return;
  clearTimeout(drawing);
  drawing = setTimeout(() => { drawing = 0; main.replaceChildren(); draw(); measure(); }, wait);
};

const heard = new Map(Object.entries({
  "ui/notifications/tool-input-partial": (p) => { call.partial = p.arguments ?? {}; redraw(100); },
  "ui/notifications/tool-input": (p) => { call.input = p.arguments ?? {}; redraw(); },
  "ui/notifications/tool-result": (p) => { call.result = p; redraw(); },
  "ui/notifications/tool-cancelled": (p) => { call.cancelled = str(p.reason) || "Cancelled."; redraw(); },
  "ui/notifications/host-context-changed": (p) => { adopt(p); p.toolInfo ? redraw() : measure(); },
}));

addEventListener("message", (e) => {
  const m = e.data;
  if (e.source !== parent || m?.jsonrpc !== "2.0") return;
  if (typeof m.method !== "string") {
    const w = waiting.get(m.id);
    waiting.delete(m.id);
    if (w) "error" in m ? w.reject(m.error) : w.resolve(m.result);
  } else if (m.id === undefined) {
    heard.get(m.method)?.(m.params ?? {});
  } else if (m.method === "ping") {
    post({ id: m.id, result: {} });
  } else if (m.method === "ui/resource-teardown") {
    sizes.disconnect();
    clearTimeout(drawing);
    heard.clear();
    post({ id: m.id, result: {} });
  } else {
    post({ id: m.id, error: { code: -32601, message: "This view has no " + m.method.slice(0, 100) } });
  }
});

// adopt takes over colours and fonts. What would load something is left out.
const loads = /url\(\s*(?!["']?data:)|@import|image-set|src\(/i;
function adopt(fresh) {
  context = { ...context, ...fresh };
  if (context.theme === "light" || context.theme === "dark") root.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (name.startsWith("--") && typeof value === "string" && !loads.test(value)) root.style.setProperty(name, value);
  }
  const fonts = context.styles?.css?.fonts;
  if (typeof fonts === "string" && !loads.test(fonts)) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(fonts);
    document.adoptedStyleSheets = [sheet];
  }
  const edge = context.safeAreaInsets;
  if (edge) for (const side of ["top", "right", "bottom", "left"]) {
    document.body.style.setProperty("padding-" + side, (Number(edge[side]) || 0) + "px");
  }
}

// measure tells the client how large the document is, when that has changed.
let width = 0, height = 0;
function measure() {
  const w = Math.ceil(innerWidth), h = Math.ceil(root.getBoundingClientRect().height);
  if (w !== width || h !== height) tell("ui/notifications/size-changed", { width: (width = w), height: (height = h) });
}
const sizes = new ResizeObserver(measure);

// Texts: what a reader could not see, or what would change how the rest reads, is shown
// as a mark. So are more marks on a letter than any script has: they cover other lines.
const invisible = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]+|(?<=\p{M}{6})\p{M}+|(?<![^\0-\x7f])[\u200c\u200d]+/gu;
const spell = (s) => [...s].map((c) => {
  const n = c.codePointAt(0);
  return n < 32 || n === 127 ? "^" + String.fromCodePoint(n ^ 64) : "[U+" + n.toString(16).toUpperCase().padStart(4, "0") + "]";
}).join("");
const plain = (s) => str(s).replace(invisible, spell);
const str = (v) => (typeof v === "string" ? v : v == null ? "" : typeof v === "object" ? JSON.stringify(v) : String(v));
const list = (v) => (Array.isArray(v) ? v : []);
const clip = (s, n) => (s.length > n ? s.slice(0, n) + "\u2026 (" + count(s.length - n, "more character") + ")" : s);
const count = (n, what) => n.toLocaleString("en") + " " + what + (n === 1 ? "" : "s");

const most = 2000;
let marks = 0;
function put(to, text) {
  text = str(text);
  let at = 0;
  for (const m of text.matchAll(invisible)) {
    if (++marks > most) break;
    to.append(text.slice(at, m.index), node("span", "mark", spell(m[0].slice(0, 200))));
    at = m.index + Math.min(m[0].length, 200);
  }
  to.append(plain(text.slice(at)));
  return to;
}

// node makes an element; children are elements, and texts of the view itself.
function node(name, style, ...children) {
  const n = document.createElement(name);
  if (style) n.className = style;
  n.append(...children.filter((c) => c != null && c !== ""));
  return n;
}
const shown = (name, style, text) => put(node(name, style), text);
const unseen = (text) => node("span", "unseen", text);
const show = (...children) => main.append(...children.filter(Boolean));
const say = (text) => { const s = document.getElementById("said"); if (s.textContent !== text) s.textContent = text; };

// few adds the first rows to a list, and the others when they are asked for.
function few(to, rows, make, what, size = 500) {
  const add = (from) => {
    const part = document.createDocumentFragment();
    for (let i = from; i < Math.min(rows.length, from + size); i++) part.append(make(rows[i], i));
    to.append(part);
    const left = rows.length - from - size;
    if (left <= 0) return;
    const more = node("button", "", "Show more: " + count(left, what));
    more.addEventListener("click", () => {
      const next = to.lastElementChild;
      more.remove();
      add(from + size);
      (next?.nextElementSibling ?? to).querySelector?.("[tabindex],button,summary")?.focus();
    });
    to.after(more);
  };
  add(0);
  return to;
}

// What every view asks of a result.
const textOf = (i) => str(list(call.result?.content)[i]?.text);
function object() {
  const s = call.result?.structuredContent;
  if (s && typeof s === "object") return s;
  try {
    const o = JSON.parse(textOf(0));
    return o && typeof o === "object" && !Array.isArray(o) ? o : {};
  } catch { return {}; }
}
const meta = (key) => call.result?._meta?.["perstack-base/" + key];
const tool = () => str(context.toolInfo?.tool?.name);
const given = () => call.input ?? call.partial ?? {};

// failure is why a call did not do what it was to do, null when it did.
function failure() {
  const o = object();
  if (call.result?.isError || o.success === false) return [str(o.error) || textOf(0) || "The call failed.", str(o.hint)];
  return null;
}
const problem = (words, style = "bad") => words && shown("p", "note " + style, clip(words, 8000));

async function start() {
  const r = await ask("ui/initialize", {
    appInfo: { name: "perstack-base " + document.title, version: "1" },
    appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] }, protocolVersion: "2026-01-26",
  });
  able = r?.hostCapabilities ?? {};
  adopt(r?.hostContext ?? {});
  tell("ui/notifications/initialized");
  sizes.observe(root);
  redraw();
}
