// A plugin of OpenClaw: adds the suite's own tools, and writes the calls of code in code mode as lines of a file.
import { appendFileSync } from "node:fs";

const SIDE_BY_SIDE_MS = 100;
const REFUSED = "it is not carried out here";

function recordCalls(api, { file, hold }) {
  const write = (line) => appendFileSync(file, `${JSON.stringify(line)}\n`);
  // A call on the wire that runs or resumes code is no call of the code.
  const isOfCode = (event) => event.toolKind !== "code_mode_exec" && event.toolName !== "wait";
  api.on("before_tool_call", async (event) => {
    if (!isOfCode(event)) return undefined;
    write({ id: event.toolCallId, name: event.toolName, arguments: event.params });
    if (!hold) return undefined;
    // The first refusal ends most code; calls beside it are to be written before.
    await new Promise((resolve) => setTimeout(resolve, SIDE_BY_SIDE_MS));
    return { block: true, blockReason: REFUSED };
  });
  api.on("after_tool_call", (event) => {
    const texts = (event.result?.content ?? []).map((part) => part.text ?? "");
    write({ id: event.toolCallId, result: texts.join("") || event.error || "" });
  });
  write({ loaded: true });
}

export default {
  id: "benchmark",
  name: "Benchmark",
  description: "Adds the tools of a prompt, and records the calls of code.",
  register(api) {
    const { tools, calls } = api.pluginConfig;
    for (const tool of tools) {
      api.registerTool({ ...tool, execute: async () => ({ content: [{ type: "text", text: REFUSED }] }) });
    }
    if (calls) recordCalls(api, calls);
  },
};
