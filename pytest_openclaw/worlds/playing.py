"""Plays a world: answers each call as OpenClaw 2026.9.6 does, and keeps the changes that calls make."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pytest_openclaw.openclaw.catalog import CALL, signature
from pytest_openclaw.openclaw.dispatch import (
    CHECK_STEPS,
    DESCRIBE,
    SEARCH,
    deferred_tools,
    dispatch,
    error_text,
    id_of,
    inner_call,
    is_forgotten,
    name_of,
    reached_tools,
    read_json,
    same_tool,
    unknown_id,
)
from pytest_openclaw.openclaw.recovery import MESSAGE, SENDS
from pytest_openclaw.util.bounded import within_steps
from pytest_openclaw.util.json_text import texts_in
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS
from pytest_openclaw.values.tool_calls import Dispatched, OwnTool, Tool, ToolCall
from pytest_openclaw.values.worlds import Failure, ScriptedAnswer, World, WorldState
from pytest_openclaw.worlds import tools as world_tools
from pytest_openclaw.worlds.commands import normal
from pytest_openclaw.worlds.shell import Exec, TimedOutError
from pytest_openclaw.worlds.tools import rank, wrap_external
from pytest_openclaw.worlds.workspace import (
    SCRATCH,
    ToolError,
    Workspace,
    cut_mark,
    cut_result,
    pretty,
    result_chars,
    text_of,
    whole_of,
)

MOST_CALLS = 300
"""The most calls of a turn that are answered."""
MOST_QUERIES = 10
_TOO_MANY = "Too many tool calls. This one was not executed."

_CONSTANT_RESULTS: Mapping[str, str] = {
    "session_status": "Session main: ready. Workspace /workspace. Nothing else is running.",
    "sessions_list": pretty({"count": 0, "sessions": [], "hasMore": False}),
    "conversations_list": pretty({"conversations": []}),
    "subagents": pretty({"status": "ok", "action": "list", "total": 0, "active": [], "recent": []}),
    "process": "No running or recent sessions.",
}
_WAITED = "[Context: the turn before this one ended on purpose, by sessions_yield, to wait for an event.]"
_NO_CHILD = "Nothing to wait for: no child of this turn is still at work. If the task is done, answer."


class Playing:
    """The state of a world during one exchange. The same calls always get the same answers."""

    def __init__(
        self, world: World, tools: Sequence[Tool], *, context_tokens: int = DEFAULT_CONTEXT_TOKENS
    ) -> None:
        self._tools = tools
        self._answers = world.answers
        self._n_matching = [0] * len(world.answers)
        self._n_calls = 0
        self._made: dict[ToolCall, Dispatched] = {}
        self._sent: list[Mapping[str, Any]] = []
        self._timed_out: list[int] = []
        self._awaits_child = False
        self._own_sends = {tool.name for tool in tools if isinstance(tool, OwnTool) and tool.effect == "send"}
        self._most_chars = result_chars(context_tokens)
        self._workspace = workspace = Workspace({**world.memory, **world.files})
        self._exec = Exec(workspace, world)
        self._played: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
            "read": partial(world_tools.read, workspace, self._most_chars),
            "write": partial(world_tools.write, workspace),
            "edit": partial(world_tools.edit, workspace),
            "apply_patch": partial(world_tools.apply_patch, workspace),
            "ls": partial(world_tools.ls, workspace),
            "exec": self._exec.answer,
            "sessions_yield": self._yield,
            "memory_search": partial(world_tools.memory_search, workspace, world.memory),
            "memory_get": partial(world_tools.memory_get, workspace, world.memory),
            "web_search": partial(world_tools.web_search, world.pages),
            "web_fetch": partial(world_tools.web_fetch, world.pages),
            SEARCH: self._search_tools,
            DESCRIBE: self._describe_tool,
            **{tool: partial(self._send, tool) for tool in SENDS},
        }

    def begin_run(self) -> None:
        """Note that the next calls answer another message; the children of earlier messages are forgotten."""
        self._awaits_child = False

    def answer_turn(self, calls: Sequence[ToolCall]) -> tuple[str, ...] | None:
        """Answer the calls of a turn; return None if a call is malformed: OpenClaw then executes none.

        A subclass may return fewer results, which ends the exchange as `left_the_record`.
        """
        if any(self.dispatched(call).problem == "malformed_json" for call in calls):
            return None
        answered = map(self.answer, calls[:MOST_CALLS])
        return (*answered, *[_TOO_MANY] * (len(calls) - MOST_CALLS))

    def dispatched(self, call: ToolCall) -> Dispatched:
        """Return OpenClaw's handling of a call."""
        if call not in self._made:
            self._made[call] = dispatch(call, self._tools)
        return self._made[call]

    def answer(self, call: ToolCall) -> str:
        """Return the result that the model receives for a call, and change the world.

        The text is empty if OpenClaw forgets the call; see `dispatch.is_forgotten`. A pattern or schema of
        the suite that cannot be decided in time raises `OpenClawError`.
        """
        made = self.dispatched(call)
        self._n_calls += 1
        try:
            text = self._result(made)
        except TimedOutError:
            self._timed_out.append(self._n_calls - 1)
            text = failure_text("timeout", made.tool or made.call.name, made.arguments or {})
        return cut_result(valid_text(text), self._most_chars)

    @property
    def state(self) -> WorldState:
        """The current state, without what commands leave in `/tmp`."""
        workspace = self._workspace
        start = workspace.start
        files = {
            path: text
            for path, text in workspace.files.items()
            if path in start or not path.startswith(f"{SCRATCH}/")
        }
        return WorldState(
            files=files,
            sent=tuple(self._sent),
            ran=tuple(self._exec.ran),
            parts=tuple(self._exec.parts),
            unrecorded=tuple(self._exec.unrecorded),
            changed=tuple(path for path in {**start, **files} if start.get(path) != files.get(path)),
            start=start,
            timed_out=tuple(self._timed_out),
        )

    # --- one call ---

    def _result(self, made: Dispatched) -> str:
        if not made.is_executed or made.tool is None or made.arguments is None:
            return "" if is_forgotten(made) else made.message
        try:
            if made.tool == CALL and (inner := inner_call(made, self._tools)) is not None:
                return self._play_inner(inner)
            return self._play(made.tool, valid_value(dict(made.arguments)))
        except ToolError as error:
            return error_text(made.tool, str(error))

    def _play_inner(self, inner: Dispatched) -> str:
        """Play a call that was made through the bridge, and return the bridge's answer."""
        if not inner.is_executed or inner.tool is None or inner.arguments is None:
            raise ToolError(inner.message)
        result = self._play(inner.tool, valid_value(dict(inner.arguments)))
        details = read_json(result)
        return pretty(
            {
                "tool": {"id": id_of(inner.tool), "name": inner.tool, "source": "openclaw"},
                "result": {
                    "content": [{"type": "text", "text": result}],
                    # Tools whose result is JSON return it a second time, as a value.
                    **({"details": details} if isinstance(details, dict) else {}),
                },
            }
        )

    def _play(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the suite's result of a call, or execute the tool."""
        scripted = self._scripted(tool, arguments)
        if scripted is not None and scripted.fails is not None:
            return failure_text(scripted.fails, tool, arguments)
        try:
            if scripted is None:
                return self._execute(tool, arguments)
            if scripted.error is not None and tool == MESSAGE:
                return _undelivered(arguments, scripted.error)
            if scripted.error is not None:
                raise ToolError(scripted.error)
            text = self._execute(tool, arguments, scripted.result)
        except ToolError as error:
            raise ToolError(_as_delivered(tool, str(error))) from None
        if scripted.cut is None or len(text) <= scripted.cut:
            return text
        return text[: scripted.cut] + cut_mark(len(text) - scripted.cut)

    def _execute(self, tool: str, arguments: Mapping[str, Any], result: str | None = None) -> str:
        """Execute a tool; with a scripted `result`, only tools that send do anything."""
        if result is None or tool in SENDS:
            if tool in self._played:
                played = self._played[tool](arguments)
                return played if result is None else result
            if tool in _CONSTANT_RESULTS:
                return _CONSTANT_RESULTS[tool]
            raise ToolError(f"{tool} is not available here")
        # OpenClaw does not announce the result of a child if the caller collects it.
        if tool == "sessions_spawn" and arguments.get("collect") is not True:
            self._awaits_child |= _status_of(result) == "accepted"
        if tool in self._own_sends:
            self._sent.append({"tool": tool, **arguments})
        return result

    def _scripted(self, tool: str, arguments: Mapping[str, Any]) -> ScriptedAnswer | None:
        """Return the suite's first answer for this call; each answer counts all calls that match it."""
        found = None
        for n, answer in enumerate(self._answers):
            if not same_tool(answer.tool, tool):
                continue
            with within_steps(CHECK_STEPS):
                if answer.schema and answer.schema.violation(dict(arguments)) is not None:
                    continue
            self._n_matching[n] += 1
            if found is None and answer.is_for(self._n_matching[n]):
                found = answer
        return found

    # --- messages, the session, and the bridge ---

    def _send(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Record a message, which is not really sent."""
        _check_message(tool, arguments)
        self._workspace.take_room(len(json.dumps(arguments)))
        media = texts_in([arguments.get("media"), arguments.get("attachments")])
        paths = {normal(one.removeprefix("file://")) for one in media} & self._workspace.files.keys()
        attached = {"attached": [*map(self._workspace.files.get, sorted(paths))]} if paths else {}
        self._sent.append({"tool": tool, **arguments, **attached})
        number = str(len(self._sent))
        if tool == MESSAGE:  # as on Telegram, whichever channel the call names
            chat = arguments.get("target") or arguments.get("to")
            return pretty({"ok": True, "messageId": number, "chatId": chat, "receipt": {}})
        return pretty({"status": "ok", "messageId": f"m{number}"})

    def _yield(self, _: Mapping[str, Any]) -> str:
        if not self._awaits_child:
            return pretty({"status": "error", "error": _NO_CHILD})
        self._awaits_child = False
        return pretty({"status": "yielded"})

    def _search_tools(self, arguments: Mapping[str, Any]) -> str:
        known = {tool.name: tool for tool in deferred_tools(self._tools)}
        texts = {name: f"{name.replace('_', ' ')} {tool.description}" for name, tool in known.items()}
        listed = arguments.get("queries")
        entries = [arguments, *(listed if isinstance(listed, list) else [])]
        asked = [one for one in entries if isinstance(one, dict) and isinstance(one.get("query"), str)]
        if not asked:
            raise ToolError("provide query or queries.")
        found: dict[str, None] = {}
        for one in asked[:MOST_QUERIES]:
            best = rank(one["query"], texts)[: min(20, whole_of(one, "limit", 5))]
            found |= dict.fromkeys(name for name, _ in best)
        return pretty([_described(known[name]) for name in found])

    def _describe_tool(self, arguments: Mapping[str, Any]) -> str:
        tool_id, reached = text_of(arguments, "id"), reached_tools(self._tools)
        tool = next((one for one in reached if one.name == name_of(tool_id)), None)
        if tool is None:
            raise ToolError(unknown_id(tool_id, reached))
        return pretty({**_described(tool), "parameters": dict(tool.parameters)})


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "id": id_of(tool.name),
        "source": "openclaw",
        "name": tool.name,
        "description": tool.description,
        "input": signature(tool.parameters),
    }


def _status_of(result: str) -> object:
    value = read_json(result)
    return value.get("status") if isinstance(value, dict) else None


# --- the calls of a reply -------------------------------------------------------------------------


def final_state(world: World, tools: Sequence[Tool], calls: Iterable[ToolCall]) -> WorldState:
    """Return the state after these calls; for the calls of a reply, see `answered_calls`."""
    playing = Playing(world, tools)
    for call in calls:
        playing.answer(call)
    return playing.state


def answered_calls(reply: Reply) -> dict[int, ToolCall]:
    """Return the calls that were answered, by their index among all calls of the reply."""
    if not reply.turns:
        return dict(enumerate(reply.tool_calls))
    answered: dict[int, ToolCall] = {}
    n_before = 0
    for turn in reply.turns:
        n_answered = min(len(turn.results), MOST_CALLS)
        answered |= dict(enumerate(turn.calls[:n_answered], n_before))
        n_before += len(turn.calls)
    return answered


def yield_note(made: Iterable[tuple[Dispatched, str]]) -> str | None:
    """Return the first text that a model receives after it yielded to a child; None if no call yielded."""
    for call, result in made:
        if call.tool == "sessions_yield" and _status_of(result) == "yielded":
            note = (call.arguments or {}).get("message")
            own = note.strip() if isinstance(note, str) else ""
            return f"{own or 'Turn yielded.'}\n\n{_WAITED}"
    return None


# --- messages -------------------------------------------------------------------------------------

_CONTENTS = ("message", "SendMessage", "content", "text", "media", "attachments", "buffer")


def _check_message(tool: str, arguments: Mapping[str, Any]) -> None:
    targets = ("targets",) if arguments.get("action") == "broadcast" else ("target", "to")
    if tool == MESSAGE and not _is_given(arguments, targets):
        raise ToolError(f"{targets[0]} required")
    if not _is_given(arguments, _CONTENTS):
        raise ToolError("message required")


def _is_given(arguments: Mapping[str, Any], keys: Iterable[str]) -> bool:
    values = (arguments.get(key) for key in keys)
    return any(one.strip() if isinstance(one, str) else isinstance(one, list) and one for one in values)


def _undelivered(arguments: Mapping[str, Any], error: str) -> str:
    """Return the result of `message` if the channel rejects the message, which OpenClaw then queues."""
    _check_message(MESSAGE, arguments)
    pending = (
        f"Delivery is pending: OutboundDeliveryError: {error}. The gateway owns retry or reconciliation;"
        " delivery is not yet confirmed. Do not resend it."
    )
    return pretty({"status": "delivery_queued", "delivered": False, "message": pending})


# --- calls that fail ------------------------------------------------------------------------------

#: seconds that OpenClaw gives a command
_COMMAND_S = 1800
# The words for commands are those in `formatExecFailureReason` of its `bash-tools.exec-runtime`.
_GUIDANCE = (
    "The command was terminated, but external side effects may already have completed. Verify the resulting"
    " state before retrying. Do not automatically rerun non-idempotent commands. Use a higher timeout only"
    " when the command is known to be safe to retry."
)

_REFUSED = (
    "The owner denied this call, so it was not carried out.\nThe decision is final: do not repeat the call,"
    " and do not ask for it to be approved again."
)


def failure_text(failure: Failure, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the result of a call that fails, in OpenClaw's form."""
    if failure == "gone":
        return f"Tool {tool} not found"
    if failure == "denied":
        return f"Exec denied (user-denied): {arguments.get('command')}" if tool == "exec" else _REFUSED
    if failure == "timeout" and tool == "exec":
        seconds = arguments.get("timeoutSeconds", _COMMAND_S)
        return f"Command timed out after {seconds} seconds.\n\n{_GUIDANCE}"
    why = "timed out" if failure == "timeout" else "failed (429): too many requests"
    return error_text(tool, _as_delivered(tool, f"{tool} {why}"))


def _as_delivered(tool: str, error: str) -> str:
    """Return the text of a tool's error, which the web tools wrap as content from outside."""
    is_web = tool in ("web_fetch", "web_search")
    return wrap_external(error, "API", with_notice=True) if is_web else error
