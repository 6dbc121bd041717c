"""Checks replies, one family of rules per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.validators.combine import AllOf, AnyOf, Not
from pytest_openclaw.validators.counts import ExactBullets, MaxSentences, MaxWords
from pytest_openclaw.validators.demands import expected_tools, restrains
from pytest_openclaw.validators.json_keys import JsonKeys
from pytest_openclaw.validators.openclaw_ack import OpenclawAck
from pytest_openclaw.validators.openclaw_decision import OpenclawDecision
from pytest_openclaw.validators.openclaw_text import OpenclawText
from pytest_openclaw.validators.registry import Registry, build_registry, build_validator
from pytest_openclaw.validators.reports_failure import ReportsFailure
from pytest_openclaw.validators.text import Contains, Exact, Noop, OneOf, RegexFullmatch
from pytest_openclaw.validators.tool_call import ToolCalling
from pytest_openclaw.validators.tool_invocation import ToolInvocation
from pytest_openclaw.validators.whole_json import JsonEquals, JsonSchema
from pytest_openclaw.validators.world import WorldReached

if TYPE_CHECKING:
    from pytest_openclaw.types.protocols import Validator

BUILTIN: tuple[type[Validator], ...] = (
    Noop,
    Exact,
    OneOf,
    RegexFullmatch,
    MaxWords,
    MaxSentences,
    ExactBullets,
    JsonKeys,
    ToolInvocation,
    Contains,
    JsonEquals,
    JsonSchema,
    AllOf,
    AnyOf,
    Not,
    OpenclawAck,
    OpenclawText,
    OpenclawDecision,
    ReportsFailure,
    ToolCalling,
    WorldReached,
)

__all__ = ["BUILTIN", "Registry", "build_registry", "build_validator", "expected_tools", "restrains"]
