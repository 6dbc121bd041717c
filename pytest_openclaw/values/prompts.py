"""Prompts, suites of them, and their cells.

`KEYS` has each key of a prompt: its type and an example in a suite, its type in `config.json`, and whether it
may differ between runs. `prompt_keys` adds the labels of parts. Labels are also in the prompt's rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Required, TypedDict

from msgspec import Meta, Struct

from pytest_openclaw.util.typed import Count, Filled, Positive, PositiveAmount, converted
from pytest_openclaw.values.parts import added_to
from pytest_openclaw.values.requests import DEFAULT_MAX_OUTPUT_TOKENS, CellKey
from pytest_openclaw.values.settings import OTHER, Rule
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import Validator
    from pytest_openclaw.values.replies import Image, Turn
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.tool_calls import Surface, Tool


Probe = Literal["injection", "destructive", "outside_workspace", "secret"]


class KnownFailure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The targets that are expected to fail a prompt, with the reason.

    Attributes:
        target: a glob over the target's label, ignoring case.
        strict: whether a target that passes is a failure; None leaves that to pytest's ini.
    """

    target: Filled = "*"
    reason: Filled
    strict: bool | None = None


MAIN = "main"
"""The only strand that counts for tool use, restraint and the tier."""
_APART = ("probe", "twin_of", "pressure_of")


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """The labels of a prompt, by which its rows are counted; prompts and rows have the same ones.

    Attributes:
        probe: The kind of a safety probe; such rows are outside the rates of tool use.
        padding_tokens: Tokens of padding before the question, as the suite sets them.
        pressure_of: The prompt whose harder form this one is.
        twin_of: The probe whose harmless twin this prompt is; such rows are outside the rates of tool use.
        variant_of: The suite and id, such as `prompts_a.toml::P1`, of the prompt that this one rewords.
        part_labels: The names and values of labels that parts add.
    """

    probe: Probe | None = None
    padding_tokens: Count | None = None
    pressure_of: str | None = None
    twin_of: str | None = None
    variant_of: str | None = None
    part_labels: tuple[tuple[str, Any], ...] = ()

    def label(self, name: str) -> Any:
        """Return the value of a label that a part adds; None without it."""
        return dict(self.part_labels).get(name)

    @property
    def strand(self) -> str:
        """The label by which these cells are separate evidence, else `MAIN`."""
        apart = [name for name in _APART if getattr(self, name) is not None]
        apart += (name for name, _ in self.part_labels if added_to(PromptEntry)[name].is_apart)
        return apart[0] if apart else MAIN


LABELS = tuple(one.name for one in fields(Labels) if one.name != "part_labels")
"""The labels of the core."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt(Labels):
    """One prompt of a suite, with the rule that judges its replies.

    Attributes:
        suite: the suite's file, relative to the root folder, with `/`.
        id: unique within its suite, such as `P1`.
        validator: the rule; `validator_spec` is the same as the author wrote it.
        expected_tool_calls: tools, one of which must be invoked, unless the validator has a list itself.
        images: images that are sent with `prompt`.
        messages: the conversation before `prompt`, with calls and their results.
        history: the model's own turns after `prompt`, so that it answers the results of the last one.
        turns: further messages of the user, each sent after the answer to the previous message; see `NEW`.
        timeout_s: seconds for one attempt, and for judging it; None means the run's `--openclaw-timeout`.
        tools: the tools offered on the wire; None for tool use in text, or no tools.
            `tools_spec` is the same as the author wrote it.
        world: answers the calls, turn by turn; None for a single question.
        repeat: the prompt's own number of repeats; None means the number of `--openclaw-repeat`.
        min_passes: how many of its `repeat` cells on a target must pass; None judges each separately.
        known_failures: the first that matches a target is used.
        surface: OpenClaw's parts of the request; None on the surface `listed`. `listed` is then the prompt of
            the suite, and `tools` and `system` come from the surface; see `suites/offered.py`.
        extra: keys of the file that have no meaning here; kept for `config.json`. `world` is the whole world
            if it has such keys.
        is_private: whether `config.json` has hashes in place of the texts of the request.
    """

    suite: str
    id: str
    name: str
    prompt: str
    validator: Validator
    validator_spec: JsonObject = field(default_factory=lambda: {"type": "noop"})
    expected_tool_calls: tuple[str, ...] | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    system: str | None = None
    images: tuple[Image, ...] = ()
    messages: tuple[Turn, ...] = ()
    history: tuple[Turn, ...] = ()
    turns: tuple[str, ...] = ()
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    timeout_s: float | None = None
    tools: tuple[Tool, ...] | None = None
    tools_spec: Any = None
    world: World | None = None
    repeat: int | None = None
    min_passes: int | None = None
    known_failures: tuple[KnownFailure, ...] = ()
    surface: Surface | None = None
    listed: Prompt | None = None
    extra: JsonObject = field(default_factory=dict)
    is_private: bool = False


NOTE = "x_"
"""Keys that begin with it are the author's own, in prompts, worlds, tools and commands."""


# --- the keys of a prompt -------------------------------------------------------------------------


class CallSpec(Struct, forbid_unknown_fields=True):
    """A call of a message."""

    name: Filled
    arguments: dict[str, Any] = {}


class UserSpec(Struct, tag="user", tag_field="role", forbid_unknown_fields=True):
    """A message of the user."""

    content: Filled


class AssistantSpec(Struct, tag="assistant", tag_field="role", forbid_unknown_fields=True):
    """A message of the model, with its calls."""

    content: str = ""
    calls: list[CallSpec] = []

    def __post_init__(self) -> None:
        if not self.calls and not self.content.strip():
            raise ValueError("has neither content nor calls. Write the assistant's text.")


class ResultSpec(Struct, tag="tool", tag_field="role", forbid_unknown_fields=True):
    """The result of the first call that has none."""

    content: str
    name: str | None = None


Message = UserSpec | AssistantSpec | ResultSpec


class ToolName(Struct):
    """An expected tool, as an object with its name."""

    name: Filled


class ValidatorEntry(TypedDict):
    """A validator, with its keys as the suite has them."""

    type: str


_SAME = Rule("equal", "free")


class Key(NamedTuple):
    """A key of a prompt.

    Attributes:
        kind: the type of its value in a suite.
        example: a value in TOML, for messages; for a table with many keys, a value for each; empty for a key
            that only `config.json` has.
        rule: whether it may differ between runs.
        recorded: its type in `config.json`; None means `kind`, or null.
    """

    kind: Any
    example: str | Mapping[str, str] = ""
    rule: Rule = _SAME
    recorded: Any = None

    def read(self, name: str, value: Any, build: Callable[[Any], Any] = lambda value: value) -> Any:
        """Return what `build` makes of the value of a key; its errors continue a sentence with the key.

        Raises:
            ValueError: the message names the key, the expected type, and an example.
        """
        try:
            found = converted(value, self.kind, name)
        except ValueError as error:
            text, example = str(error), self.example
            if text.endswith("."):
                raise
            if not isinstance(example, str):
                name = next((one for one in example if f"{name}.{one}" in text), next(iter(example)))
                example = example[name]
            raise ValueError(f"{text}. Write for example {name} = {example}.") from None
        try:
            return build(found)
        except ValueError as error:
            text = str(error)
            raise ValueError(f"{name}{'' if text[:1] in ' .[' else ' '}{text}") from None


MOST_TURNS = 50
MOST_REPEATS = 9999
MOST_IMAGES = 20
"""In one request, as many as Anthropic takes in full size: https://platform.claude.com/docs/en/build-with-claude/vision"""
_FREE = Rule("free", "free")
_ASKED = Rule("equal", "prompt")
_JUDGED = Rule("equal", "validator")
KEYS: Mapping[str, Key] = {
    "suite": Key(str, "", _FREE, Required[str]),
    "id": Key(Filled, '"P1"', _FREE, Required[str]),
    "prompt": Key(Filled, '"What is 2 + 2?"', _ASKED, str),
    "name": Key(str, '"greeting"', recorded=str),
    "category": Key(str, '"router"'),
    "tags": Key(tuple[str, ...], '["router"]', _FREE, tuple[str, ...]),
    "system": Key(str, '"Be brief."', _ASKED),
    "images": Key(
        Annotated[list[Filled], Meta(min_length=1, max_length=MOST_IMAGES)],
        '["chart.png"]',
        _FREE,
        list[str] | None,
    ),
    "images_sha256": Key(list[str], rule=_ASKED),
    "messages": Key(
        Annotated[list[Message], Meta(min_length=1)],
        '[{ role = "user", content = "Hi" }, { role = "assistant", content = "Hello" }]; roles are user,'
        " assistant and tool, and the system text is the prompt's key system",
        _ASKED,
        list[dict[str, Any]] | None,
    ),
    "history": Key(
        Annotated[list[Message], Meta(min_length=1)],
        '[{ role = "assistant", calls = [{ name = "ls" }] }, { role = "tool", content = "a.txt" }]',
        _ASKED,
        list[dict[str, Any]] | None,
    ),
    "turns": Key(
        Annotated[tuple[Filled, ...], Meta(min_length=1, max_length=MOST_TURNS)], '["And now?"]', _ASKED
    ),
    "max_output_tokens": Key(Positive, "256", _ASKED, Positive),
    "timeout_s": Key(PositiveAmount, "60", Rule("free", "noted")),  # decides which cells time out
    "tools": Key(Any, '"direct"', _FREE, Any),
    "tools_sha256": Key(str, rule=_ASKED),
    "world": Key(
        World,
        {
            "files": '{ "notes/a.txt" = "text" }',
            "memory": '{ "memory/2026-11-20.md" = "text" }',
            "pages": '{ "https://example.org" = "text" }',
            "env": '{ LANG = "C" }',
            "commands": '[{ pattern = "df.*", output = "90 %", exit_code = 0 }]',
            "answers": '[{ tool = "web_search", result = "nothing found" }]',
            "steps": "8",
            "python": "true",
        },
        _ASKED,
        dict[str, Any] | None,
    ),
    "padding_tokens": Key(Count, rule=_ASKED),
    "validator": Key(Any, '{ type = "noop" }', _JUDGED, ValidatorEntry),
    "expected_tool_calls": Key(list[Filled | ToolName], '["free"]', _JUDGED, list[str] | None),
    "probe": Key(Probe, '"injection"'),
    "twin_of": Key(Filled, '"S1", the id of the probe whose harmless twin this is'),
    "variant_of": Key(
        Annotated[str, Meta(pattern=r"\A([^/\\]*[^/\\\s][^/\\]*::)?[^/\\]*[^/\\\s][^/\\]*\Z")],
        '"prompts_core.toml::P1", or the id of a prompt of this suite',
        recorded=str | None,
    ),
    "pressure_of": Key(str),
    "repeat": Key(Annotated[int, Meta(ge=1, le=MOST_REPEATS)], "5"),
    "pass": Key(
        Annotated[str, Meta(pattern=r"\A\s*[0-9]{1,5}\s+of\s+[0-9]{1,5}\s*\Z")],
        '"4 of 5"',
        recorded=str | None,
    ),
    "xfail": Key(
        KnownFailure | list[KnownFailure],
        '[{ target = "*smollm*", reason = "too small for this" }]',
        recorded=list[dict[str, Any]] | None,
    ),
    "extra": Key(dict[str, Any], "", _FREE, dict[str, Any]),
}


if TYPE_CHECKING:
    PromptEntry = JsonObject
else:
    _RECORDED = {name: key.recorded or key.kind | None for name, key in KEYS.items()}
    PromptEntry = TypedDict("PromptEntry", _RECORDED, total=False)
    PromptEntry.__doc__ = """A prompt as its suite defines it, defaults included.

    Attributes:
        messages: The conversation before the prompt.
        turns: The user's messages after the first answer.
        tools: The tools as the suite lists them.
    """


@cache
def part_keys() -> Mapping[str, Key]:
    """Return the labels that parts add."""
    return {
        name: Key(one.kind, one.example, one.rule or _SAME) for name, one in added_to(PromptEntry).items()
    }


@cache
def prompt_keys() -> Mapping[str, Key]:
    """Return each key of a prompt."""
    return {**KEYS, **part_keys()}


@cache
def prompt_rules() -> Mapping[str, Rule]:
    """Return whether a key of a prompt may differ when a run is resumed, merged or compared."""
    return {**{name: key.rule for name, key in prompt_keys().items()}, OTHER: _FREE}


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A file of prompts; ids are unique within it.

    Attributes:
        named_only: whether the suite is collected only if its file is named.
        left_out: id of an entry that is not asked → the reason; the entry is shown as a skipped test.
    """

    path: str
    prompts: tuple[Prompt, ...]
    named_only: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One prompt on one target; pytest calls it an item.

    Attributes:
        repeat: the number of the repeat, from 1.
        n_repeats: the maximum number of repeats of the prompt; if it is above 1, ids have the repeat.
    """

    prompt: Prompt
    target: Target
    repeat: int = 1
    n_repeats: int = 1

    @property
    def id(self) -> str:
        """`P1[ollama_openai/llama3.2:3b@low]`, the item's name; or `P1[lab/m-r2]` if there are repeats."""
        return f"{self.prompt.id}[{self.label}]"

    @property
    def label(self) -> str:
        """The target's label, with the repeat if a prompt is asked more than once."""
        return f"{self.target.label}-r{self.repeat}" if self.n_repeats > 1 else self.target.label

    @property
    def key(self) -> CellKey:
        """The key that distinguishes this cell from every other."""
        return CellKey(self.prompt.suite, self.prompt.id, self.target, self.repeat)
