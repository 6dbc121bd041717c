"""The seed's JSON validator: required keys, and rules for their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.core.json_text import same, to_text
from pytest_openclaw.core.quoting import listed, shortened, shown
from pytest_openclaw.validators.answer import answer, judged_json
from pytest_openclaw.validators.keys import (
    flag_value,
    hint,
    list_value,
    settle,
    table_value,
    texts_value,
    what,
)

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply, Verdict

RULES = ("number", "one_of")


@dataclass(frozen=True, kw_only=True)
class JsonKeys:
    """The answer holds one JSON object with all `required_keys`, whose values follow `key_rules`.

    A rule is `{"type": "number"}` or `{"type": "one_of", "values": [...]}`. It judges the key where it
    is there; only `required_keys` must be. `strict` allows neither a fence nor prose around the object.
    """

    type: ClassVar[str] = "json_keys"
    required_keys: tuple[str, ...] = field(
        metadata=hint('List the keys a reply must have, for example "required_keys": ["route"].')
    )
    key_rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    strict: bool = False

    def __post_init__(self) -> None:
        settle(self, required_keys=texts_value(self.type, "required_keys", self.required_keys))
        for key, rule in table_value(self.type, "key_rules", self.key_rules).items():
            _check_rule(key, rule)
        flag_value(self.type, "strict", self.strict)

    def check(self, reply: Reply) -> Verdict:
        """Find the object and judge its keys; the first violation counts."""
        return judged_json(answer(reply), self._violation, strict=self.strict)

    def _violation(self, found: Mapping[str, Any]) -> str | None:
        for key in self.required_keys:
            if key not in found:
                return f"{shown(key)} is missing, the keys are {listed(list(found)[:20], 'none')}"
        for key, rule in self.key_rules.items():
            if key in found and (violation := _broken_rule(rule, found[key])):
                return f"{key}: {violation}"
        return None


def _broken_rule(rule: Mapping[str, Any], value: Any) -> str | None:
    if rule["type"] == "one_of":
        if any(same(value, allowed) for allowed in rule["values"]):
            return None
        return f"{_written(value)} is not one of {listed(rule['values'])}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return f"{_written(value)} is not a number"


def _written(value: Any) -> str:
    return shown(value) if isinstance(value, str) else shortened(to_text(value))


def _check_rule(key: str, rule: object) -> None:
    where = f"validator json_keys: the rule for {shown(key)}"
    if not isinstance(rule, Mapping):
        raise ValueError(f'{where} is {what(rule)}. Write an object, for example {{"type": "number"}}.')
    if "type" not in rule:
        raise ValueError(f'{where} has no "type". Known are "number" and "one_of".')
    if rule["type"] not in RULES:
        unknown = shown(rule["type"]) if isinstance(rule["type"], str) else what(rule["type"])
        raise ValueError(f'{where} has the unknown type {unknown}. Known are "number" and "one_of".')
    if rule["type"] == "one_of":
        if "values" not in rule:
            raise ValueError(
                f'{where} has no "values". List what is allowed, for example "values": ["yes", "no"].'
            )
        list_value(f"json_keys: the rule for {shown(key)}", "values", rule["values"])
