// A plugin of OpenClaw: writes the calls that code makes in code mode, and their results, as lines of a file.
import { appendFileSync } from "node:fs";

const SIDE_BY_SIDE_MS = 100;

export default {
  id: "call-recorder",
  name: "Call recorder",
  description: "Writes the calls that code makes to a file.",
  register(api) {
    const { file, hold } = api.pluginConfig;
    const write = (line) => appendFileSync(file, `${JSON.stringify(line)}\n`);
    // A call on the wire that runs or resumes code is no call of the code.
    const isOfCode = (event) => event.toolKind !== "code_mode_exec" && event.toolName !== "wait";
    api.on("before_tool_call", async (event) => {
      if (!isOfCode(event)) return undefined;
      write({ id: event.toolCallId, name: event.toolName, arguments: event.params });
      if (!hold) return undefined;
      // The first refusal ends most code; calls beside it are to be written before.
      await new Promise((resolve) => setTimeout(resolve, SIDE_BY_SIDE_MS));
      return { block: true, blockReason: "it is not carried out here" };
    });
    api.on("after_tool_call", (event) => {
      const texts = (event.result?.content ?? []).map((part) => part.text ?? "");
      write({ id: event.toolCallId, result: texts.join("") || event.error || "" });
    });
    write({ loaded: true });
  },
};
