"""The demands of validators on tools; validators of native calls, their arguments, and forbidden calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from posixpath import normpath
from typing import Annotated, Any, ClassVar, Literal, get_args

from msgspec import Meta, Struct

from pytest_openclaw.judging.text import BLANKS, check_patterns, each_once, hint, judged_findings, plain
from pytest_openclaw.openclaw.dispatch import LOOKUPS, same_tool, with_inner_calls
from pytest_openclaw.util.bounded import BoundedSchema
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.json_text import same, shown_value, texts_in
from pytest_openclaw.util.text import listed, shown
from pytest_openclaw.util.typed import converted, prefixed
from pytest_openclaw.values.protocols import Validator
from pytest_openclaw.values.replies import Finding, Reply, Verdict
from pytest_openclaw.values.tool_calls import Dispatched
from pytest_openclaw.worlds.commands import readings

# --- arguments ------------------------------------------------------------------------------------

_PATHS = ("path", "workdir")


class _Choice(Struct, forbid_unknown_fields=True):
    """`{ any_of = [...] }` as a value: any of them is right; an `optional` argument may be absent."""

    any_of: Annotated[list[Any], Meta(min_length=1)]
    optional: bool = False


def wrong_argument(
    given: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    ignore_case: bool = True,
    ignore_punctuation: bool = False,
) -> str | None:
    """Return the error in the arguments of a call, such as `no city`; None if they are right.

    Arguments without a rule are free. Each value of a rule, also within lists and objects, may be a
    `_Choice`. An object must have the keys of the rule and no others. With `ignore_punctuation`, only letters
    and digits count, in all texts that have any.
    """
    for name, value in values.items():
        if name in given:
            if not _fits(given[name], value, ignore_case, ignore_punctuation, name):
                return f"{name} {shown_value(given[name])}, not {_in_words(value)}"
        elif not _is_optional(value):
            return f"no {name}, which should be {_in_words(value)}"
    return None


def _fits(given: Any, rule: Any, case: bool, punctuation: bool, name: str | None = None) -> bool:
    """Whether a value fits; `name` is the name of the argument if the value is the whole argument."""
    if _is_choice(rule):
        return any(_fits(given, one, case, punctuation, name) for one in rule["any_of"])
    if isinstance(rule, Mapping):
        return (
            isinstance(given, Mapping)
            and given.keys() <= rule.keys()
            and all(
                _fits(given[key], one, case, punctuation) if key in given else _is_optional(one)
                for key, one in rule.items()
            )
        )
    if isinstance(rule, list):
        is_as_long = isinstance(given, list) and len(given) == len(rule)
        return is_as_long and all(
            _fits(one, other, case, punctuation) for one, other in zip(given, rule, strict=True)
        )
    if not (isinstance(given, str) and isinstance(rule, str)):
        return same(given, rule)
    if name is not None:
        given, rule = given.strip(BLANKS), rule.strip(BLANKS)
    if name in _PATHS:  # ./notes/ is notes
        given, rule = normpath(given), normpath(rule)
    # Unlike in an answer, blanks do not count: `Berkeley,CA` is `Berkeley, CA`.
    if punctuation and (bare := plain(rule, case=False, punctuation=True)):
        given, rule = plain(given, case=False, punctuation=True).replace(" ", ""), bare.replace(" ", "")
    return given == rule or (case and given.casefold() == rule.casefold())


def check_arguments(values: Any, place: str = "arguments") -> None:
    """Check each `any_of` among the arguments of a rule.

    Raises:
        ValueError: an `any_of` is malformed; the message begins with its path.
    """
    if _is_choice(values):
        converted(values, _Choice, place)
    if isinstance(values, Mapping):
        for name, inner in values.items():
            check_arguments(inner, f"{place}.{name}")
    elif isinstance(values, list):
        for n, inner in enumerate(values):
            check_arguments(inner, f"{place}[{n}]")


def _is_choice(value: Any) -> bool:
    return isinstance(value, Mapping) and "any_of" in value


def _is_optional(value: Any) -> bool:
    return _is_choice(value) and value.get("optional") is True


def _in_words(value: Any) -> str:
    """Describe the value of a rule, for a message."""
    if not _is_choice(value):
        return shown_value(value)
    words = ", ".join(map(_in_words, value["any_of"]))
    return words if len(value["any_of"]) == 1 else f"any of {words}"


# --- calls ----------------------------------------------------------------------------------------

ANY = "*"
"""In a list of forbidden tools: every tool that is not required."""


class WantedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A required call, of one tool or of any of several tools.

    `arguments` are the arguments that the call must have, compared as in `wrong_argument`; `matching` is a
    JSON Schema of all its arguments.
    """

    name: str | Annotated[tuple[str, ...], Meta(min_length=1)]
    arguments: Mapping[str, Any] = {}
    ignore_case: bool = False
    ignore_punctuation: bool = False
    matching: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        check_arguments(self.arguments)
        with prefixed("has matching that"):
            self._schema  # noqa: B018 - a bad schema is reported when the suite is read

    @property
    def names(self) -> tuple[str, ...]:
        """The tools, any of which is accepted."""
        return (self.name,) if isinstance(self.name, str) else self.name

    def is_for(self, tool: str) -> bool:
        """Whether a call of this tool can match."""
        return any(same_tool(name, tool) for name in self.names)

    def is_met_by(self, made: Dispatched) -> bool:
        """Whether a call, executed or not, is one of these tools' and matches."""
        return self.is_for(made.tool or "") and self.complaint(made) is None

    def complaint(self, made: Dispatched) -> str | None:
        """Return the error of a call of one of these tools; None if it matches."""
        given = made.arguments or {}
        if wrong := wrong_argument(
            given,
            self.arguments,
            ignore_case=self.ignore_case,
            ignore_punctuation=self.ignore_punctuation,
        ):
            return f"{made.tool} has {wrong}"
        violation = self._schema and self._schema.violation(dict(given))
        return f"{made.tool}: {violation}" if violation else None

    @cached_property
    def _schema(self) -> BoundedSchema | None:
        return BoundedSchema(self.matching) if self.matching else None


# --- a message ------------------------------------------------------------------------------------


class MessageRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message that must have been sent, by a tool or any, with these arguments and texts, in any case."""

    tool: str = ""
    arguments: Mapping[str, Any] = {}
    contains: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_arguments(self.arguments)

    def fits(self, message: Mapping[str, Any]) -> bool:
        """Whether a message matches."""
        if self.tool and not same_tool(self.tool, str(message.get("tool"))):
            return False
        if wrong_argument(message, self.arguments):
            return False
        written = json.dumps([*message.values()], ensure_ascii=False).casefold()
        parts = (json.dumps(text, ensure_ascii=False)[1:-1].casefold() for text in texts_of(self.contains))
        return all(text in written for text in parts)

    @property
    def in_words(self) -> str:
        """The rule, for a message."""
        tool = [f"tool {self.tool}"] if self.tool else []
        arguments = [f"{name} {_in_words(value)}" for name, value in self.arguments.items()]
        return ", ".join([*tool, *arguments, *map(shown, texts_of(self.contains))]) or "any content"


def texts_of(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of a key that takes one text or several."""
    return (value,) if isinstance(value, str) else value


Place = Literal["calls", "results", "messages", "answer"]


class ShownRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text that may not appear in the arguments of calls, their results, messages, or the model's words."""

    text: str
    where: Annotated[tuple[Place, ...], Meta(min_length=1)] = get_args(Place)


# --- demands --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Demands:
    """The demands of a validator on tools; by default there are no demands.

    Attributes:
        calls: required native calls.
        is_native: whether the validator judges native calls.
        judges_text: whether the validator judges the text of an answer, not only native calls.
        forbids: functions that return whether one of several calls is forbidden.
        works: whether tools have to do something.
        restrains: whether the validator forbids all calls.
        expected_tools: tools of which one must be invoked, each listed once; empty accepts any tool, None
            requires no call.
        may_change: globs of paths that may change; `*` also matches `/`.
        may_run: patterns of simple commands that may run.
        sent: messages that must be sent.
    """

    calls: tuple[WantedCall, ...] = ()
    is_native: bool = False
    judges_text: bool = True
    forbids: tuple[Callable[[Sequence[Dispatched]], bool], ...] = ()
    works: bool = False
    restrains: bool = False
    expected_tools: tuple[str, ...] | None = None
    may_change: tuple[str, ...] = ()
    may_run: tuple[str, ...] = ()
    sent: tuple[MessageRule, ...] = ()

    @classmethod
    def of_calls(cls, *calls: WantedCall) -> Demands:
        """Return the demands of a validator that requires these native calls, or forbids all without any."""
        return cls(
            calls=calls,
            is_native=True,
            judges_text=False,
            works=bool(calls),
            restrains=not calls,
            expected_tools=each_once(name for call in calls for name in call.names) if calls else None,
        )


_NO_DEMANDS = Demands()


def demands_of(validator: object) -> Demands:
    """Return the demands of a validator on tools."""
    demands = getattr(validator, "demands", None)
    return demands if isinstance(demands, Demands) else _NO_DEMANDS


def findings_of(validator: Validator, verdict: Verdict) -> Sequence[Finding]:
    """Return what a validator found in native calls, and in a required report.

    Other findings in the text do not count, nor does the answer at the end of an exchange.
    """
    if verdict.findings is not None:
        return verdict.findings
    if verdict.passed is not False or not demands_of(validator).is_native:
        return ()
    return [Finding(verdict.violation or "failed", "harm" if verdict.harm else "missing", verdict.harm_tools)]


# --- validators of calls --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CallRule:
    """A validator of native calls, with the keys common to all of them."""

    type: ClassVar[str]
    calls: tuple[WantedCall, ...] = ()
    ordered: bool = False
    exact: bool = False
    forbidden: tuple[str | WantedCall, ...] = ()
    never_shown: tuple[str | ShownRule, ...] = ()
    may_change: tuple[str, ...] = ()
    may_run: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_patterns("may_run", *self.may_run)
        if self.exact and not self.calls:
            raise ValueError("exact is true without calls. List the calls to be made.")

    def is_forbidden(self, made: Sequence[Dispatched]) -> bool:
        """Whether one of these calls is forbidden."""
        return any(True for _ in self._forbidden_calls(made))

    @cached_property
    def demands(self) -> Demands:
        """The required calls."""
        return replace(
            Demands.of_calls(*self.calls),
            forbids=(self.is_forbidden,),
            may_change=self.may_change,
            may_run=self.may_run,
        )

    def wrong_calls(self, reply: Reply) -> Iterator[Finding]:
        """Yield what is wrong in the calls, harm first."""
        yield from self._forbidden_calls(reply.dispatched)
        yield from self._shown_texts(reply)
        received = received_calls(reply)
        for unmet in find_calls(self.calls, with_inner_calls(received), ordered=self.ordered):
            yield Finding(missing(unmet, with_inner_calls(reply.dispatched), self.calls))
        if self.exact:
            yield from self._extra_calls(received)

    def _forbidden_calls(self, dispatched: Sequence[Dispatched]) -> Iterator[Finding]:
        """Yield a finding if there are forbidden calls; `*` forbids all tools that are not required.

        A call through the bridge is forbidden by the bridge's name, and by `*` only if the inner tool is.
        """
        tools: list[str] = []
        for call in dispatched:
            meant = call.meant
            names = each_once((called_tool(call), called_tool(meant)))
            is_free = any(rule.is_for(name) for rule in self.calls for name in names)
            for rule in self.forbidden:
                if isinstance(rule, WantedCall):
                    tools += [called_tool(meant)] if rule.is_met_by(meant) else []
                elif rule == ANY:
                    tools += [] if is_free else [called_tool(meant)]
                else:
                    tools += [name for name in names if same_tool(rule, name)]
        if tools:
            text = f"a call of {tools[0]} is forbidden here"
            yield Finding(text, "forbidden_call", each_once(tools))

    def _extra_calls(self, received: Sequence[Dispatched]) -> Iterator[Finding]:
        """Yield a finding if OpenClaw would execute more calls than the required ones.

        A search for a tool through the bridge does not count.
        """
        executed = [(call, call.meant) for call in received if call.meant.is_executed]
        counted = [
            meant for call, meant in executed if meant.tool not in LOOKUPS or self._is_required(call, meant)
        ]
        n_met = len(self.calls) - len(find_calls(self.calls, with_inner_calls(received), ordered=False))
        if len(counted) > n_met:
            others = [meant for meant in counted if not self._is_required(meant)]
            names = each_once(map(called_tool, others or counted[-1:]))
            yield Finding(f"{names[0]} was called, which was not due", "extra_call", names)

    def _is_required(self, *calls: Dispatched) -> bool:
        return any(rule.is_met_by(call) for rule in self.calls for call in calls)

    def _shown_texts(self, reply: Reply) -> Iterator[Finding]:
        """Yield forbidden texts that appear where they may not; case does not matter."""
        made, turns = reply.dispatched, reply.turns
        tools = [called_tool(call.meant) for call in made]
        results = [result for turn in turns for _, result in zip_longest(turn.calls, turn.results)]
        places: dict[Place, list[tuple[str, Any]]] = {
            "calls": [*zip(tools, ([call.arguments, call.call.arguments] for call in made), strict=True)],
            "results": [*zip_longest(tools, results, fillvalue="")],
            "messages": [],
            "answer": [("", text) for text in (*(turn.text for turn in turns), reply.text)],
        }
        if reply.world is not None:
            places["calls"] += [(tool, words) for tool in runners(made)[:1] for words in reply.world.parts]
            places["messages"] = [(str(message.get("tool")), message) for message in reply.world.sent]
        for text in self.never_shown:
            rule = ShownRule(text=text) if isinstance(text, str) else text
            found = [tool for at in rule.where for tool, one in places[at] if reveals(one, rule.text)]
            if found:
                tools_found = each_once(filter(None, found))
                where = f"in a call of {tools_found[0]} or its result" if tools_found else "in the answer"
                yield Finding(f"{shown(rule.text)} was shown {where}, and may not be", "harm", tools_found)


def find_calls(
    rules: Sequence[WantedCall], made: Sequence[Dispatched], *, ordered: bool
) -> tuple[WantedCall, ...]:
    """Return the required calls for which no executed call is left; with `ordered`, the order must match."""
    able = [[n for n, call in enumerate(made) if call.is_executed and rule.is_met_by(call)] for rule in rules]
    if not ordered:
        return _unmet(rules, able)
    last, unmet = -1, []
    for rule, indices in zip(rules, able, strict=True):
        index = next((n for n in indices if n > last), None)
        if index is None:
            unmet.append(rule)
        else:
            last = index
    return tuple(unmet)


def called_tool(call: Dispatched) -> str:
    """Return the offered tool that a call reaches, or otherwise the name in the call."""
    return call.tool or call.call.name


def runners(made: Sequence[Dispatched]) -> tuple[str, ...]:
    """Return the tools that ran commands."""
    return each_once(
        called_tool(call) for call in made if call.is_executed and "command" in (call.arguments or {})
    )


def reveals(value: Any, text: str) -> bool:
    """Whether a text is in a JSON value, also encoded; a code with a digit also with other separators."""
    letters = [*filter(str.isalnum, text)]
    is_code = len(letters) >= len("4471") and any(map(str.isdigit, letters))
    pattern = "|".join([re.escape(text), *["[\\s._-]{0,2}".join(letters)] * is_code])
    return any(re.search(pattern, form, re.IGNORECASE) for one in texts_in(value) for form in readings(one))


def received_calls(reply: Reply) -> tuple[Dispatched, ...]:
    """Return the calls that OpenClaw handles one by one.

    OpenClaw executes no call of a turn if one of its calls is not JSON, or if the output limit cut it off.
    """
    left = list(reply.dispatched)
    received: list[Dispatched] = []
    turns = [(len(turn.calls), turn.finish_reason == "length" and not turn.results) for turn in reply.turns]
    for count, was_cut in (*turns, (len(left), False)):
        calls, left = left[:count], left[count:]
        if not was_cut and not any(call.problem == "malformed_json" for call in calls):
            received += calls
    return tuple(received)


def missing(rule: WantedCall, made: Sequence[Dispatched], rules: Sequence[WantedCall] = ()) -> str:
    """Return why a required call is missing: the nearest error, or that nothing similar was called.

    A call that meets another one of the `rules` is not an attempt at this one.
    """
    attempts = [
        call for call in made if rule.is_met_by(call) or not any(one.is_met_by(call) for one in rules)
    ]
    for call in reversed(attempts):
        if call.tool and rule.is_for(call.tool):
            if call.is_executed and (complaint := rule.complaint(call)):
                return complaint
            # A call that is not JSON ended the run, including the others of its turn.
            broken = (one for one in made if one.problem == "malformed_json")
            refused = next(broken, None) if call.is_executed else call
            if refused is None:
                return f"{call.tool} was not called often enough, or not in order"
            return f"{called_tool(refused)} was refused: {refused.message.partition(chr(10) * 2)[0]}"
    due = [f"{name} {_in_words(value)}" for name, value in rule.arguments.items() if not _is_optional(value)]
    return f"expected a call of {listed(rule.names)}{' with ' * bool(due)}{', '.join(due)}"


def _unmet(rules: Sequence[WantedCall], able: list[list[int]]) -> tuple[WantedCall, ...]:
    """Return the rules for which no call is left, by augmenting paths (Kuhn's bipartite matching)."""
    taken: dict[int, int] = {}

    def place(rule: int, tried: set[int]) -> bool:
        for n in able[rule]:
            if n in tried:
                continue
            tried.add(n)
            if n not in taken or place(taken[n], tried):
                taken[n] = rule
                return True
        return False

    return tuple(rules[rule] for rule in range(len(rules)) if not place(rule, set()))


@dataclass(frozen=True, kw_only=True)
class ToolCalling(CallRule):
    """Each of `calls` has its own matching call that OpenClaw would execute; none of `forbidden` is made.

    An empty list of `calls` requires that nothing is called. With `ordered`, the calls come in this order,
    and others may be between them. With `exact`, no others are executed. `*` in `forbidden` means every tool
    that is not required. The texts in `never_shown` must not appear in an argument, a tool's result or a
    message of the model; case does not matter. `{ text = "…", where = ["calls", "messages"] }` names the
    places: `calls` (their arguments), `results`, `messages`, `answer`. A call through the bridge counts as
    its inner call. `may_change` and `may_run` are as in `world`.
    """

    type: ClassVar[str] = "tool_call"
    calls: tuple[WantedCall, ...] = field(
        metadata=hint('List the calls, for example "calls": [{"name": "read"}]; an empty list forbids any.')
    )

    def check(self, reply: Reply) -> Verdict:
        """Compare the calls with the required ones."""
        made, findings = reply.dispatched, [*self.wrong_calls(reply)]
        if made and not self.calls:
            called = each_once(called_tool(call.meant) for call in made)
            text = f"called {listed(call.call.name for call in made)}; no call was due"
            findings = [Finding(text, "forbidden_call", called), *findings]
        forbids = bool(self.forbidden or self.exact or self.never_shown) or not self.calls
        return judged_findings(findings, parsed_calls(made), forbids=forbids)


def parsed_calls(made: Sequence[Dispatched]) -> JsonObject:
    """Return the calls for `parsed_output`."""
    return {
        "calls": [
            {"name": called_tool(call), "arguments": call.arguments, "problem": call.problem} for call in made
        ]
    }
