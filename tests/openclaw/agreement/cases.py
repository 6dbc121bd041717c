"""The cases: a world and the turns of a model in it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_openclaw.providers.openclaw.call import why_not_askable
from pytest_openclaw.suites import load_suite
from pytest_openclaw.tools.catalogue import load_catalogue
from pytest_openclaw.types.prompts import Prompt, Suite
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.worlds import Command, World
from pytest_openclaw.validators import BUILTIN, build_registry
from pytest_openclaw.validators.registry import build_validator
from tests.openclaw.model_server import Said

ROOT = Path(__file__).parents[3]
REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        id: unique.
        about: a description in one line.
        prompt: with tools, world and validator.
        turns: the model's turns; the last one is repeated.
    """

    id: str
    about: str
    prompt: Prompt
    turns: tuple[Said, ...]

    @property
    def digest(self) -> str:
        """Identifies the case's content, to detect changes since it was played."""
        world = self.prompt.world
        tools = [tool.name for tool in self.prompt.tools or ()]
        # Without variables a world is the one that was played before there were any.
        shown = repr(world).replace(", env={}", "")
        content = [shown, tools, repr(self.turns), self.prompt.validator_spec, self.prompt.prompt]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def call(tool: str, /, **arguments: Any) -> tuple[str, str]:
    """Return a call as the API sends it."""
    return tool, json.dumps(arguments, ensure_ascii=False)


def calls(*made: tuple[str, str]) -> Said:
    """Return a turn with calls."""
    return Said(calls=made)


def says(text: str) -> Said:
    """Return a turn that is text alone."""
    return Said(text=text)


DONE = says("Done.")
FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "same\nother\nsame\n", "deep/c.txt": "C", "empty.txt": ""}
READ = call("read", path="a.txt")


def own_case(
    name: str,
    about: str,
    *turns: Said,
    tools: Sequence[str] = ("read", "write", "edit", "ls"),
    files: Mapping[str, str] | None = None,
    commands: Sequence[Command] = (),
    steps: int = 12,
    wants: Mapping[str, Any] | None = None,
) -> Case:
    """Return a case with its own world; its validator requires a call of the first tool and an answer."""
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
        world=World(files=files or {}, commands=tuple(commands), steps=steps),
    )
    return Case(id=name, about=about, prompt=prompt, turns=turns)


@cache
def _suite() -> Suite:
    name = "prompts_agentic.toml"
    return load_suite(ROOT / "benchmarks" / name, name=f"benchmarks/{name}", registry=REGISTRY)


def suite_cases() -> Iterator[Case]:
    """Yield the right and the wrong exchanges of the agentic suite, in the worlds that OpenClaw can play."""
    scripts = tomllib.loads((ROOT / "tests/suites/replies_agentic.toml").read_text("utf-8"))
    for prompt in _suite().prompts:
        if why_not_real(prompt):
            continue
        for verdict in ("right", "wrong"):
            written = [scripts[prompt.id][verdict], *scripts[prompt.id].get(f"also_{verdict}", [])]
            for number, script in enumerate(written, 1):
                turns = [
                    calls(*(call(one["name"], **one["arguments"]) for one in turn))
                    for turn in script["turns"]
                ]
                yield Case(
                    id=f"{prompt.id}-{verdict}-{number}",
                    about=f"{prompt.name}: {verdict}",
                    prompt=prompt,
                    turns=(*turns, says(script["text"])),
                )


def unplayed() -> Iterator[tuple[str, str]]:
    """Yield the prompts of the suite that the real agent cannot play, with the reasons."""
    for prompt in _suite().prompts:
        if why := why_not_real(prompt):
            yield f"`{prompt.id}` ({prompt.name})", why


def why_not_real(prompt: Prompt) -> str:
    """Return why the real agent does not play a prompt's world; empty if it does."""
    return why_not_askable(
        Request(model="m", prompt=prompt.prompt, tools=prompt.tools or (), world=prompt.world)
    )


@cache
def all_cases() -> tuple[Case, ...]:
    """Return every case, each id once."""
    from tests.openclaw.agreement.endings import endings
    from tests.openclaw.agreement.mistaken_calls import mistaken_calls
    from tests.openclaw.agreement.mistaken_files import mistaken_files

    cases = (*suite_cases(), *mistaken_calls(), *mistaken_files(), *endings())
    assert len({case.id for case in cases}) == len(cases), "an id is there twice"
    return cases
