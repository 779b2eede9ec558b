// The journey with the TypeScript client v2:
// node client_v2.mjs stdio|http|sse TARGET WORKSPACE auto|2026-07-28|legacy.
// TARGET is the binary or the URL.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { journey } from "./journey.mjs";

const [kind, target, workspace, era] = process.argv.slice(2);
const transport = () => {
  switch (kind) {
    case "stdio": return new StdioClientTransport({ command: target, args: ["serve"], cwd: workspace, stderr: "inherit" });
    case "sse": return new SSEClientTransport(new URL(target));
    default: return new StreamableHTTPClientTransport(new URL(target));
  }
};
const mode = era === "2026-07-28" ? { pin: era } : era;
const client = new Client({ name: "e2e", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(transport());
await journey(client, (name, args, options) => client.callTool({ name, arguments: args }, options), workspace);
await client.close();
process.exit(0);
