"""Parses values of gates, and ini lines for some targets: `glob: min-pass-rate=0.9 require-tier=off`."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from pytest_openclaw.session.option_values import matching, number, on_off
from pytest_openclaw.suites.wording import closest, shown
from pytest_openclaw.types.settings import GATE_SWITCHES, LOSS, REGRESSION, GateLine, loss_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FORM = "Write for example `ollama_openai/*: min-pass-rate=0.9 require-tier=off`."


def fail_on(text: str) -> str:
    """Return a value of `fail-on`: `regression`, or a loss such as `loss>0.1`.

    Raises:
        ValueError: it is another value.
    """
    if text == REGRESSION:
        return text
    if (limit := loss_limit(text)) is None:
        raise ValueError("give regression, or a loss between 0 and 1, for example loss>0.1")
    return f"{LOSS}{limit:.10g}"


_RATE = number(lambda rate: 0 <= rate <= 1, "give a rate from 0 to 1, for example 0.9")
GATES: Mapping[str, Callable[[str], Any]] = {
    "min-pass-rate": _RATE,
    "min-tool-rate": _RATE,
    "require-tier": matching("[123]", int, "give tier 1, 2 or 3"),
    "max-p95-ms": number(lambda ms: 0 < ms < inf, "give milliseconds greater than 0, for example 5000"),
    "fail-on": fail_on,
}
"""The parser of each gate's value; options and ini lines use the same names."""


def parse_gate(name: str, text: str) -> Any:
    """Return the value of a gate; None for `off`.

    Raises:
        ValueError: the value is not allowed; the message says which are.
    """
    if text == "off":
        return None
    try:
        return GATES[name](text)
    except ValueError as error:
        raise ValueError(f"{error}, or off") from None


def parse_gate_line(line: str) -> GateLine:
    """Parse a line of `openclaw_gates`.

    Raises:
        ValueError: the line is malformed; the message has a hint.
    """
    target, colon, rest = (part.strip() for part in line.rpartition(":"))
    if not colon or not target or " " in target:
        raise ValueError(f"{shown(line.strip())} has no glob of targets before a colon. {_FORM}")
    if not rest:
        raise ValueError(f"{target}: there is no gate after the colon. {_FORM}")
    changes: dict[str, Any] = {}
    for word in rest.split():
        name, equals, text = word.partition("=")
        field = name.replace("-", "_")
        if not equals or (name not in GATES and field not in GATE_SWITCHES):
            known = [*GATES, *(switch.replace("_", "-") for switch in sorted(GATE_SWITCHES))]
            what = f"{target}: {shown(word)} is no gate; there are {', '.join(known)}."
            raise ValueError(f"{what}{closest(name, known)} {_FORM}")
        if field in changes:
            raise ValueError(f"{target}: {name} is set twice; keep one.")
        try:
            changes[field] = on_off(text) if field in GATE_SWITCHES else parse_gate(name, text)
        except ValueError as error:
            raise ValueError(f"{target}: {word}: {error}") from None
    return GateLine(target=target, changes=changes)
