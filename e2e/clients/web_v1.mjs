// The journey with the TypeScript SDK v1: node web_v1.mjs http|sse URL WORKSPACE.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { journey } from "./journey.mjs";

const [kind, url, workspace] = process.argv.slice(2);
const Transport = kind === "sse" ? SSEClientTransport : StreamableHTTPClientTransport;
const client = new Client({ name: "e2e", version: "1.0.0" });
await client.connect(new Transport(new URL(url)));
await journey(client, (name, args, options) => client.callTool({ name, arguments: args }, undefined, options), workspace);
await client.close();
process.exit(0);
