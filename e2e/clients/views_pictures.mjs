// Makes the pictures of the views in README, of real calls:
// node views_pictures.mjs BROWSER BINARY DIRECTORY, as in
// node e2e/clients/views_pictures.mjs chromium ./perstack-base docs/images
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Viewer } from "./viewer.mjs";

const [program, binary, directory] = process.argv.slice(2);
const workspace = await mkdtemp(join(tmpdir(), "perstack-base-pictures-"));
const viewer = await Viewer.start(program, resolve(binary), workspace);
const width = 640;

async function shoot(name, c, look) {
  await viewer.show({ name, want: "", ...c }, { theme: look }, width);
  await viewer.picture(join(directory, `view-${name}.png`), width);
  await viewer.browser.run("close_()");
}

try {
  await viewer.call("todo", { newTodos: ["Read the issue and the code around it", "Write a test that fails", "Accept empty lines", "Tell of it in the changelog"], completedTodos: [0] });
  await shoot("plan", await viewer.call("todo", { newTodos: ["Measure it again"], completedTodos: [1] }), "light");

  await viewer.call("writeTextFile", { path: "greet.go", text: 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\tname := os.Args[1]\n\tfmt.Println("Hello, " + name)\n}\n' });
  await viewer.call("writeTextFile", { path: "notes.txt", text: "Names come from the command line.\n" });
  await shoot("diff", await viewer.call("apply_patch", { patch: '*** Begin Patch\n*** Update File: greet.go\n@@ func main() {\n-\tname := os.Args[1]\n-\tfmt.Println("Hello, " + name)\n+\tname := "world"\n+\tif len(os.Args) > 1 {\n+\t\tname = os.Args[1]\n+\t}\n+\tfmt.Println("Good morning, " + name)\n*** Update File: notes.txt\n*** Move to: docs/notes.txt\n@@\n-Names come from the command line.\n+Names come from the command line, or are world.\n*** End Patch' }), "light");

  await writeFile(join(workspace, "test.sh"), "printf '\\033[32mok  \\033[0m parse   \\033[2m0.01s\\033[0m\\n\\033[32mok  \\033[0m render  \\033[2m0.20s\\033[0m\\n\\033[1;31mFAIL\\033[0m install \\033[33mno write permission\\033[0m\\n'\ntouch /etc/greet.conf\n");
  await shoot("terminal", await viewer.call("shell_command", { command: "sh test.sh" }), "dark");
} finally {
  await viewer.close();
  await rm(workspace, { recursive: true, force: true });
}
process.exit(0);
