"""The cases: a world and the turns of a model in it."""

import hashlib
import json
import re
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from msgspec import structs

from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.providers.openclaw.call import why_not_askable
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.worlds import World
from tests.builtin import REGISTRY
from tests.openclaw.model_server import Said

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A prompt with tools, world and validator, and the model's turns, of which the last one is repeated."""

    id: str
    about: str
    prompt: Prompt
    turns: tuple[Said, ...]

    @property
    def digest(self):
        """Identifies the case's content, to detect changes since it was played."""
        world = structs.asdict(self.prompt.world or World())
        world["answers"] = [*map(structs.asdict, world["answers"])]
        world["commands"] = [_plain(command) for command in world["commands"]]
        # Keys that are not set do not count, so that a new key is not a change.
        content = {key: value for key, value in world.items() if value}
        tools = [tool.name for tool in self.prompt.tools or ()]
        said = [asdict(turn) for turn in self.turns]
        content |= {"tools": tools, "turns": said, "validator": self.prompt.validator_spec}
        content |= {"prompt": self.prompt.prompt}
        if self.prompt.turns:
            content["users_turns"] = self.prompt.turns
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _plain(command):
    plain = {**structs.asdict(command), "writes": {**command.writes, **dict.fromkeys(command.removes)}}
    del plain["removes"]
    return plain


def call(tool, /, **arguments):
    return tool, json.dumps(arguments, ensure_ascii=False)


def read(path, **more):
    return call("read", path=path, **more)


def write(path, content, **more):
    return call("write", path=path, content=content, **more)


def edit(path, *edits):
    return call("edit", path=path, edits=[{"oldText": old, "newText": new} for old, new in edits])


def turn(step):
    if isinstance(step, Said):
        return step
    return Said(text=step) if isinstance(step, str) else Said(calls=tuple(step))


DONE = "Done."
FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "same\nother\nsame\n", "deep/c.txt": "C", "empty.txt": ""}
READ = read("a.txt")


def own_case(name, about, *turns, tools=("read", "write", "edit", "ls"), wants=None, **world):
    """Return a case with its own world of `FILES`; it requires a call of the first tool and an answer."""
    spec = {"type": "world", "calls": [{"name": tools[0]}], "answer": {"type": "contains", "value": "Done"}}
    spec |= wants or {}
    known = load_catalogue().tools
    prompt = Prompt(
        suite="agreement",
        id=name,
        name=name,
        prompt="Go on.",
        validator=build_validator(spec, REGISTRY),
        validator_spec=spec,
        tools=tuple(known[tool] for tool in tools),
        world=World(**{"files": FILES, "steps": 12, **world}),
    )
    return Case(id=name, about=about, prompt=prompt, turns=tuple(map(turn, turns)))


SUITES = ("agentic", "failures", "conventions", "conversations")
WHOLE = ("agentic",)
"""Suites with more exchanges than one right and one wrong; each exchange takes OpenClaw a while."""


@cache
def _suite(name):
    file = f"benchmarks/prompts_{name}.toml"
    return load_suite(ROOT / file, name=file, registry=REGISTRY)


def suite_cases():
    """Yield the right and the wrong exchanges of the suites with worlds that OpenClaw can play."""
    for name in SUITES:
        scripts = tomllib.loads((ROOT / f"tests/suites/replies_{name}.toml").read_text("utf-8"))
        for prompt in _suite(name).prompts:
            if not why_not_real(prompt):
                yield from _cases_of(prompt, scripts[prompt.id], further=name in WHOLE)


def _cases_of(prompt, scripts, *, further):
    for verdict in ("right", "wrong"):
        written = [scripts[verdict], *(scripts.get(f"also_{verdict}", []) if further else ())]
        for number, script in enumerate(written, 1):
            yield Case(
                id=f"{prompt.id}-{verdict}-{number}",
                about=f"{prompt.name}: {verdict}",
                prompt=prompt,
                turns=_turns_of(script),
            )


def _turns_of(script):
    """Return the turns of a script: a list of calls and answers, or the calls of each turn and the answer."""
    steps = script
    if isinstance(script, dict):
        steps = [*script["turns"], *(() if script.get("loop") else (script["text"],))]
    return tuple(
        turn(step if isinstance(step, str) else [call(one["name"], **one["arguments"]) for one in step])
        for step in steps
    )


def unplayed():
    """Yield why the real agent cannot play prompts of the suites, with the prompts of each reason."""
    by_reason = {}
    for name in SUITES:
        for prompt in _suite(name).prompts:
            if why := why_not_real(prompt):
                reason = re.sub(r"offers .*?; the", "offers other tools; the", why)
                by_reason.setdefault(reason, []).append(f"`{prompt.id}`")
    yield from by_reason.items()


def why_not_real(prompt):
    fields = ("prompt", "messages", "turns", "world")
    asked = {name: getattr(prompt, name) for name in fields}
    return why_not_askable(Request(model="m", tools=prompt.tools or (), **asked))


@cache
def all_cases():
    from tests.openclaw.agreement.endings import endings
    from tests.openclaw.agreement.mistaken_calls import mistaken_calls
    from tests.openclaw.agreement.mistaken_files import mistaken_files
    from tests.openclaw.agreement.results import long_results, messages

    cases = (*suite_cases(), *mistaken_calls(), *mistaken_files(), *endings(), *messages(), *long_results())
    assert len({case.id for case in cases}) == len(cases), "an id is there twice"
    return cases
