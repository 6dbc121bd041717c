"""Parses the text of a suite file into a `Suite`; reports all errors at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.errors import SuiteError
from pytest_openclaw.core.quoting import listed
from pytest_openclaw.suites.document import read_document
from pytest_openclaw.suites.offered import of_catalogue
from pytest_openclaw.suites.pressure_forms import under_pressure
from pytest_openclaw.suites.prompt import check_id, read_prompt
from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.types.prompts import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.suites.document import SuiteFormat
    from pytest_openclaw.suites.prompt import ReadFile
    from pytest_openclaw.tools.catalogue import Catalogue
    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.validators.registry import Registry

MOST_ERRORS = 20


def parse_suite(
    text: str | bytes,
    *,
    format: SuiteFormat,  # noqa: A002 (it is the plainest name for the caller)
    name: str,
    registry: Registry,
    catalogue: Catalogue | None = None,
    read_file: ReadFile | None = None,
) -> Suite:
    """Parse a suite.

    TOML: tables below `[[prompts]]`. JSON: a list of objects, or an object with a list `prompts`. Beside it
    `named_only = true` keeps the suite out of runs that do not name its file; `role` is of all its prompts.
    Keys: `id` and `prompt`; optionally `name`, `validator`, `expected_tool_calls`, `category`, `tags`,
    `system`, `images`, `messages`, `turns`, `timeout_s`, `max_output_tokens`, `tools`, `world`, `probe`,
    `twin_of`, `pressure`, `variant_of`, `repeat`, `pass`, `xfail`. Others are kept in `Prompt.extra`; null is
    absent.

    Args:
        text: the file; bytes must be UTF-8.
        format: of the file.
        name: of the file in rows and errors.
        registry: the existing validators.
        catalogue: a captured one with tools and surfaces; None for the shipped one.
        read_file: reads a picture beside the suite; None leaves pictures out.

    Raises:
        SuiteError: a line for each of the first 20 faults, with file, prompt, key and hint.
    """
    document = read_document(text, format=format, name=name)
    entries = under_pressure(document.entries, catalogue)
    if catalogue is not None:
        entries = [_with_tools_of(catalogue, entry) for entry in entries]
    prompts: list[Prompt] = []
    complaints: list[str] = []
    positions: dict[str, int] = {}
    for position, raw in enumerate(entries, start=1):
        prompt, found = _read_entry(
            raw, position, positions, suite=name, registry=registry, read_file=read_file
        )
        complaints += found
        if prompt is not None:
            prompts.append(replace(prompt, role=document.role) if document.role else prompt)
    complaints = complaints or [*_unpaired(prompts)]
    if complaints:
        raise SuiteError("\n".join(_first_lines(name, complaints)))
    return Suite(path=name, prompts=tuple(prompts), named_only=document.named_only)


def _with_tools_of(catalogue: Catalogue, entry: Any) -> Any:
    if not isinstance(entry, dict) or entry.get("tools") is None:
        return entry
    return {**entry, "tools": of_catalogue(catalogue, entry["tools"])}


def _read_entry(
    raw: Any,
    position: int,
    positions: dict[str, int],
    *,
    suite: str,
    registry: Registry,
    read_file: ReadFile | None,
) -> tuple[Prompt | None, list[str]]:
    """Parse an entry, add its id to `positions`, and prefix each error with the prompt."""
    label = f"prompt no. {position}"
    if not isinstance(raw, dict):
        hint = "Write an object with id, prompt and validator."
        return None, [f"{label}: is {kind_of(raw)}, not an object. {hint}"]
    prompt_id, complaints = "", []
    try:
        prompt_id = check_id(raw)
        if (first := positions.setdefault(prompt_id, position)) != position:
            complaints.append(
                f"id {shown(prompt_id)} is the id of prompt no. {first} too. Give each an id of its own."
            )
        else:
            label = f"prompt {prompt_id}"
    except ValueError as error:
        complaints.append(str(error))
    prompt, found = read_prompt(raw, prompt_id, suite=suite, registry=registry, read_file=read_file)
    complaints += found
    return prompt, [f"{label}: {complaint}" for complaint in complaints]


def _unpaired(prompts: Sequence[Prompt]) -> Iterator[str]:
    """Yield the twins whose probe is not in the suite, and the variants of nothing."""
    probes = {prompt.id for prompt in prompts if prompt.probe}
    for prompt in prompts:
        if prompt.twin_of is not None and prompt.twin_of not in probes:
            known = f"Probes: {listed(sorted(probes))}." if probes else "It has no prompt with probe."
            yield f"prompt {prompt.id}: twin_of {shown(prompt.twin_of)} is no probe of this suite. {known}"
    ids = {f"{prompt.suite}::{prompt.id}": prompt for prompt in prompts}
    for prompt in prompts:
        own, _, of = (prompt.variant_of or "").rpartition("::")
        if own != prompt.suite:  # another file, which may not be part of the session
            continue
        if of == prompt.id or f"{own}::{of}" not in ids:
            yield f"prompt {prompt.id}: variant_of {shown(of)} is no other prompt of this suite."
        elif ids[f"{own}::{of}"].variant_of:
            hint = "Write the prompt that both ask in other words."
            yield f"prompt {prompt.id}: variant_of {shown(of)} is a variant itself. {hint}"


def _first_lines(name: str, complaints: list[str]) -> list[str]:
    rest = len(complaints) - MOST_ERRORS
    shown_first = complaints[:MOST_ERRORS] + ([f"and {rest} more."] if rest > 0 else [])
    return [f"{name}: {complaint}" for complaint in shown_first]
