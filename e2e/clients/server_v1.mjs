// A stdio server of one tool on the official TypeScript SDK: the class of the
// reference implementation, for the benchmark of cold starts.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "comparator", version: "1.0.0" });
server.registerTool("todo", { description: "Nothing", inputSchema: { title: z.string() } }, async () => ({ content: [] }));
await server.connect(new StdioServerTransport());
process.stdin.on("end", () => process.exit(0));
