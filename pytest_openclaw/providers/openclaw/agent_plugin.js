// A plugin of OpenClaw: adds the suite's own tools.
const REFUSED = "it is not carried out here";

export default {
  id: "benchmark",
  name: "Benchmark",
  description: "Adds the tools of a prompt.",
  register(api) {
    for (const tool of api.pluginConfig.tools) {
      api.registerTool({ ...tool, execute: async () => ({ content: [{ type: "text", text: REFUSED }] }) });
    }
  },
};
