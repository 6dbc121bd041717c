"""What to change for each way in which tool use fails: the template, the API, the schemas or the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.stats.tool_use import Evidence
    from pytest_openclaw.types.tool_calls import ToolOutcome


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The meaning of an outcome for OpenClaw, and its fix.

    Attributes:
        short: the hint in one line of the terminal.
    """

    short: str
    full: str


DIAGNOSE = (
    "On a local server, `--openclaw-diagnose` names the part at fault: the model, its chat template, the "
    "server's parser or its stream."
)

PARSER_REMEDIES: Mapping[str, str] = {
    "ollama /v1": "use ollama_native, as OpenClaw does, with a model that `ollama show` lists with tools",
    "ollama": "take a model that `ollama show` lists with tools, or add its family's TEMPLATE",
    "llama.cpp": "start llama-server with --jinja and the chat template of the model's family",
    "llama_cpp": "serve it by llama-server with --jinja and --chat-template-file of its family",
    "vllm": "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model's family",
    "sglang": "start SGLang with the --tool-call-parser of the model's family",
    "public": "take the model from another provider, or another model: this one's server does not read it",
    "": "configure the chat template and the tool parser of the model's family",
}
"""What makes a server read the calls that a model writes, by server; see `parser_remedy`."""
_BY_PROVIDER = {
    "llama_cpp": "llama_cpp",
    "ollama_native": "ollama",
    "openai_responses": "public",
    "anthropic_messages": "public",
    "gemini": "public",
}


def parser_remedy(provider: str, server: str | None, path: str | None = None) -> str:
    """Return what makes a server read the calls that a model writes as text.

    Args:
        provider: that the target is asked by; an endpoint of the user's own has a name of its own.
        server: as it reports itself; None if it does not.
        path: of the request; None if it is not known.
    """
    if provider == "llama_cpp":
        return PARSER_REMEDIES["llama_cpp"]
    is_native = provider == "ollama_native" or path == "/api/chat"
    if server == "ollama":
        return PARSER_REMEDIES["ollama" if is_native else "ollama /v1"]
    return PARSER_REMEDIES.get(server or "?") or PARSER_REMEDIES[_BY_PROVIDER.get(provider, "")]


ADVICE: Mapping[ToolOutcome, Advice] = {
    "forbidden_call": Advice(
        short="keep the forbidden tools from it; trust it with no others",
        full="The work was done, and beside it something that the prompt forbids. Keep the tools that did it "
        "from this model, or take another one.",
    ),
    "extra_call": Advice(
        short="keep tools from it that may not act twice",
        full="The work was done, and more than that: a call was made again, or one that was not asked for. "
        "Keep tools that pay, send or delete from this model, or let OpenClaw ask before they run.",
    ),
    "wrong_tool": Advice(
        short="offer fewer tools (a smaller profile), or take another model",
        full="The calls were sound, but of other tools than the task needs. Offer fewer "
        "tools: a smaller profile, or an allow-list for this model; what still goes wrong is the model.",
    ),
    "bad_arguments": Advice(
        short="offer tools with smaller schemas, or take a larger model",
        full="The tool was right and its arguments were not: OpenClaw refuses what does not fit the schema, "
        "and the model sees why. Offer tools with fewer parameters, and see whether it recovers in a "
        "scripted exchange; values that are merely wrong need a larger or less quantised model.",
    ),
    "unknown_tool": Advice(
        short="take old tool names out of its instructions; offer fewer",
        full="The model called a tool that was not offered. Take the names of other agents and older "
        "releases out of its instructions, and check that the prompt with all its schemas fits the context: "
        "a server that cuts it cuts the tools first.",
    ),
    "malformed_json": Advice(
        short="it ends an OpenClaw run: raise the token limit, or change it",
        full="The arguments were no JSON, and OpenClaw ends the whole run there. If `finish_reason` is "
        "`length`, raise the limit on output tokens; else try the server's own API and its tool "
        "parser for this model family, and then a less quantised or another model.",
    ),
    "leaked_as_text": Advice(
        short="use chat template and tool parser of the model's family",
        full="The model wrote its call as text, the server did not read it, and OpenClaw runs nothing. Chat "
        "template and tool parser must be those of the model's family: `leaked_valid` says what the calls "
        f"would have been worth, and a parser can be replaced. {DIAGNOSE}",
    ),
    "claimed_not_done": Advice(
        short="trust no report of it; see --openclaw-diagnose",
        full="The model says that it is done, and nothing happened. A model that goes on claiming may not "
        f"act without somebody who looks. {DIAGNOSE}",
    ),
    "no_call": Advice(
        short="--openclaw-diagnose names the part at fault (local servers)",
        full="The model explained, asked back, refused or announced, and called nothing. "
        f"{DIAGNOSE} Of a cloud model it is the model.",
    ),
    "out_of_steps": Advice(
        short="give it more steps, or smaller tasks",
        full="The model was on the right path when its last turn was used up. Raise `steps` of the world, to "
        "see whether it gets there; else give it smaller tasks.",
    ),
    "unfinished": Advice(
        short="give it smaller tasks, one thing at a time",
        full="The tools were the right ones, and something that was due is missing, wrong or in another "
        "order. Give it smaller tasks, one thing at a time, or take a larger model.",
    ),
    "called_needlessly": Advice(
        short="offer fewer tools; say in the prompt when none is needed",
        full="The model called a tool where none was needed or allowed. Offer fewer tools, say in its "
        "instructions when to answer without one, and keep tools that write, send or run from it.",
    ),
}
"""For each bad outcome what to change; `valid` and `restrained` need no advice."""

TEXT_ADVICE: Mapping[ToolOutcome, Advice] = {
    "wrong_tool": Advice(
        short="no tool was offered, and text runs nothing: offer it tools",
        full="The answer wrote another tool than was asked for. These prompts offer none on the wire, and "
        "OpenClaw runs no text: what counts is how the model calls where tools are offered, as in "
        "`prompts_native.toml`.",
    ),
    "no_call": Advice(
        short="no tool was offered, and text runs nothing: offer it tools",
        full="The answer wrote no call. These prompts offer no tool on the wire, so neither template nor "
        "API is to blame, and OpenClaw runs no text: see how the model calls where tools are offered, as in "
        "`prompts_native.toml`.",
    ),
    "called_needlessly": Advice(
        short="text runs nothing: see what it does where tools are offered",
        full="The answer wrote a call where none was wanted. OpenClaw runs no text: what counts is whether "
        "the model holds back where tools are offered, as in `prompts_native.toml`.",
    ),
}
"""The same where no tool was offered on the wire, and the text detector judged."""


def advice_on(outcome: ToolOutcome, evidence: Evidence | None) -> Advice | None:
    """Return the fix for an outcome, which depends on its kind of evidence; None for a good outcome."""
    return (TEXT_ADVICE.get(outcome) if evidence == "text" else None) or ADVICE.get(outcome)
