"""Validators made of validators. One that does not judge, such as noop, has no voice in any of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import shown
from pytest_openclaw.types.protocols import Validator
from pytest_openclaw.types.replies import Reply, Verdict
from pytest_openclaw.validators.answer import judged
from pytest_openclaw.validators.keys import list_value, mend, settle, what

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject

_MEND = 'List validators, for example "validators": [{"type": "max_words", "value": 8}].'


@dataclass(frozen=True, kw_only=True)
class _Several:
    type: ClassVar[str]
    nested: ClassVar[tuple[str, ...]] = ("validators",)
    validators: tuple[Validator, ...] = field(metadata=mend(_MEND))

    def __post_init__(self) -> None:
        settle(self, validators=_validators(self.type, self.validators))


@dataclass(frozen=True, kw_only=True)
class AllOf(_Several):
    """Every one of `validators` passes; not judged if none of them judges."""

    type: ClassVar[str] = "all_of"

    def check(self, reply: Reply) -> Verdict:
        """Ask all of them and name every violation."""
        verdicts = [validator.check(reply) for validator in self.validators]
        failed = [verdict.violation or "failed" for verdict in verdicts if verdict.passed is False]
        if all(verdict.passed is None for verdict in verdicts):
            return Verdict(passed=None)
        return judged(not failed, "; ".join(failed), _parsed(self.type, verdicts))


@dataclass(frozen=True, kw_only=True)
class AnyOf(_Several):
    """At least one of `validators` passes; not judged if none of them judges. An empty list fails."""

    type: ClassVar[str] = "any_of"

    def check(self, reply: Reply) -> Verdict:
        """Ask all of them, so that a broken one always shows."""
        verdicts = [validator.check(reply) for validator in self.validators]
        if verdicts and all(verdict.passed is None for verdict in verdicts):
            return Verdict(passed=None)
        failed = [verdict.violation or "failed" for verdict in verdicts if verdict.passed is False]
        violation = f"none of the alternatives passes: {'; '.join(failed) or 'there are none'}"
        passed = any(verdict.passed for verdict in verdicts)
        return judged(passed, violation, _parsed(self.type, verdicts))


@dataclass(frozen=True, kw_only=True)
class Not:
    """`validator` fails; not judged if it does not judge."""

    type: ClassVar[str] = "not"
    nested: ClassVar[tuple[str, ...]] = ("validator",)
    validator: Validator = field(
        metadata=mend(
            'Write the validator that must fail, for example "validator": {"type": "max_words", "value": 8}.'
        )
    )

    def __post_init__(self) -> None:
        if not isinstance(self.validator, Validator):
            raise ValueError(
                f'validator {self.type}: "validator" is {what(self.validator)}.'
                ' Write one validator, for example {"type": "noop"}.'
            )

    def check(self, reply: Reply) -> Verdict:
        """Turn the verdict round."""
        inner = self.validator.check(reply)
        if inner.passed is None:
            return Verdict(passed=None)
        found = f": found {_short(inner.parsed)}" if inner.parsed else ""
        violation = f"{self.validator.type} must not pass, and does{found}"
        return judged(not inner.passed, violation, inner.parsed)


def _validators(owner: str, value: object) -> tuple[Validator, ...]:
    if isinstance(value, Validator):
        raise ValueError(f'validator {owner}: "validators" is an object. {_MEND}')
    validators = list_value(owner, "validators", value)
    for validator in validators:
        if not isinstance(validator, Validator):
            raise ValueError(f"validator {owner}: {what(validator)} is no validator. {_MEND}")
    return validators


def _parsed(owner: str, verdicts: list[Verdict]) -> JsonObject:
    return {owner: [verdict.parsed for verdict in verdicts]}


def _short(parsed: JsonObject) -> str:
    return shown(json.dumps(parsed, ensure_ascii=False))[1:-1]
