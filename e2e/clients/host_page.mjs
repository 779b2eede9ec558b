// The host's half of MCP Apps, in the browser: shows one view after another. It is the
// library that hosts are made of; only what it is told to send comes from the tests.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

let shown;

/** open shows a view in a frame, or by way of a proxy, which is handed its html; width in pixels. */
window.open_ = async ({ src, html, width, context, resources = true }) => {
  await window.close_();
  const frame = document.createElement("iframe");
  frame.sandbox = html ? "allow-scripts allow-same-origin" : "allow-scripts"; // a proxy's own frame is of another origin
  frame.style.cssText = `border:0;display:block;width:${width}px;height:100px`;
  document.body.replaceChildren(frame);
  shown = { frame, sent: [], sizes: [], asked: [] };
  const it = shown;
  it.listen = (e) => e.source === frame.contentWindow && it.sent.push(e.data?.method ?? "");
  addEventListener("message", it.listen);
  const bridge = new AppBridge(null, { name: "host", version: "1" }, resources ? { serverResources: {} } : {}, { hostContext: context });
  it.bridge = bridge;
  bridge.onreadresource = async ({ uri }) => { it.asked.push(uri); return (await fetch("/resource?uri=" + encodeURIComponent(uri))).json(); };
  bridge.onsizechange = ({ width: w, height }) => { it.sizes.push([w, height]); frame.style.height = Math.min(height, 6000) + "px"; };
  const ready = new Promise((r) => { bridge.oninitialized = r; });
  bridge.onsandboxready = () => bridge.sendSandboxResourceReady({ html, sandbox: "allow-scripts" });
  frame.src = src;
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  await ready;
  it.app = [bridge.getAppVersion(), bridge.getAppCapabilities()];
};
window.partial_ = (args) => shown.bridge.sendToolInputPartial({ arguments: args });
window.input_ = (args) => shown.bridge.sendToolInput({ arguments: args });
window.result_ = (result) => shown.bridge.sendToolResult(result);
window.cancelled_ = (reason) => shown.bridge.sendToolCancelled({ reason });
window.context_ = (context) => shown.bridge.setHostContext(context);
window.seen_ = () => ({ sent: shown.sent, sizes: shown.sizes, asked: shown.asked, app: shown.app, height: shown.frame.clientHeight });
window.close_ = async () => {
  if (!shown) return;
  const end = await shown.bridge.teardownResource({});
  removeEventListener("message", shown.listen);
  shown = undefined;
  return end;
};
window.ready_ = true;
