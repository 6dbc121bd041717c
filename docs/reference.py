"""An MkDocs hook that generates pages under `reference/` from the code, with each build."""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import TYPE_CHECKING, Any

from pytest_openclaw import hookspecs
from pytest_openclaw.cli import command_modules, load_command
from pytest_openclaw.judging.registry import BUILTIN
from pytest_openclaw.options import OPTIONS, Option
from pytest_openclaw.values import faults
from pytest_openclaw.values.prompts import prompt_rules
from pytest_openclaw.values.run_files import load_schema
from pytest_openclaw.values.settings import OTHER, PROVIDERS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

    from pytest_openclaw.values.protocols import Validator

MADE = "<!-- made from the code by docs/reference.py -->"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    from mkdocs.structure.files import File  # the tests have no MkDocs

    for name, page in PAGES.items():
        text = "\n".join([MADE, "", *page(), ""])
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def options() -> Iterator[str]:
    """Every option with its ini twin."""
    yield "# Options and ini keys"
    yield ""
    yield "Each option `--openclaw-x` has an ini key `openclaw_x` of the same meaning. The command line"
    yield "overrides the ini file, which overrides the default, shown in parentheses."
    yield ""
    rows = [
        (_flag(option) if option.where == "both" else "", _code(option.ini), option.help)
        for option in OPTIONS
    ]
    yield from _table(("option", "ini key", "meaning"), rows)


def commands() -> Iterator[str]:
    """Every command's own help."""
    yield "# Commands"
    yield ""
    yield "`pytest-openclaw COMMAND` works on existing runs, and calls no model. With `--json` every"
    yield "command prints one JSON object."
    for name in command_modules():
        yield from ("", f"## {name}", "", "```text", load_command(name).help.rstrip(), "```")


def hooks() -> Iterator[str]:
    """Every hook with its signature and its docstring, which has a snippet to paste."""
    yield "# Hooks"
    yield ""
    yield "Implement them in the root `conftest.py` or in an installed plugin; the built-ins use the same"
    yield "hooks."
    for name, hook in inspect.getmembers(hookspecs, inspect.isfunction):
        if name.startswith("pytest_openclaw_"):
            yield from ("", f"## {name}", "", "```python", f"def {name}{inspect.signature(hook)}", "```", "")
            yield inspect.getdoc(hook) or ""


def rows() -> Iterator[str]:
    """Every field of a row, as the JSON Schema has it."""
    yield "# Rows"
    yield ""
    yield "A line of `results.jsonl` is a JSON object with these fields, all of them, always. The schema"
    yield "ships with the package as `pytest_openclaw/values/schemas/row.schema.json`."
    yield ""
    yield from _properties(load_schema("row")["properties"])


def summary() -> Iterator[str]:
    """Every field of `summary.json`, as the JSON Schema has it."""
    schema = load_schema("summary")
    yield "# summary.json"
    yield ""
    yield from _properties(schema["properties"])
    yield from ("", "## A group", "", "`groups` has one for each target.", "")
    yield from _properties(schema["$defs"]["Group"]["properties"])
    for name, definition in schema["$defs"].items():
        if name != "Group":
            yield from ("", f"## {name}", "")
            if text := definition.get("description"):
                yield from (text, "")
            yield from _properties(definition["properties"])


def same_run() -> Iterator[str]:
    """Every key of `config.json` that two runs must have in common, or not."""
    yield "# The same run"
    yield ""
    yield "Which keys of `config.json` may differ between a run and the session that resumes it, and between"
    yield "compared runs."
    yield ""
    yield "- `resume`: *equal* refuses another value, *kept* takes the run's unless the command line has one,"
    yield "  *grows* refuses a smaller one, *once* another one if the run has one, *free* takes the"
    yield "  session's."
    yield "- `compare`: a word of `--across` sets such cells aside without it, *noted* reports differences."
    yield ""
    yield "`merge` refuses runs with another surface, and whatever is not *free* in `compare`; of a prompt"
    yield "everything must be equal."
    yield ""
    yield "Only `resume` needs the same targets and the same selected prompts. It checks those providers that"
    yield "have an answered row."
    for title, rules in (
        ("Settings", SETTINGS),
        ("Of a provider", PROVIDERS),
        ("Of a prompt", prompt_rules()),
    ):
        yield from ("", f"## {title}", "")
        names = ((name if name == OTHER else _code(name), rule) for name, rule in rules.items())
        lines = [(name, rule.resume, rule.compare) for name, rule in names]
        yield from _table(("key", "resume", "compare"), lines)


def failures() -> Iterator[str]:
    """Every failure type."""
    yield "# Failure types"
    yield ""
    yield "`failure_type` is one of these, or null. Failures that are not a model's are not part of any rate."
    yield ""
    yield from _table(("failure type", "what happened"), [
        *((_code(name), meaning) for name, meaning in faults.FAILURE_TYPES.items()),
        (_code("http_<status>"), "the server answered with this HTTP status and no further detail"),
    ])  # fmt: skip


def validators() -> Iterator[str]:
    """Every validator with its keys, by its docstring."""
    yield "# Validators"
    yield ""
    yield "The keys of a `validator` in [a suite](suites.md#validators); `?` marks optional ones."
    yield ""
    yield from _table(
        ("`type`", "keys", "meaning"),
        [
            (_code(one.type), ", ".join(_keys(one)), " ".join((inspect.getdoc(one) or "").split()))
            for one in BUILTIN
        ],
    )


def _keys(validator: type[Validator]) -> Iterator[str]:
    for field in dataclasses.fields(validator):  # type: ignore[arg-type]
        optional = (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
        yield f"{_code(field.name)}?" if optional else _code(field.name)


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    page.__name__: page for page in (options, commands, hooks, rows, summary, same_run, failures, validators)
}


def _properties(properties: dict[str, Any]) -> Iterator[str]:
    yield from _table(
        ("field", "type", "meaning"),
        [(_code(name), _type_of(rule), rule.get("description", "")) for name, rule in properties.items()],
    )


def _type_of(rule: dict[str, Any]) -> str:
    if "$ref" in rule:
        name = rule["$ref"].rpartition("/")[2]
        named = _at(rule["$ref"])
        return f"[{name}](#{name.lower()})" if "properties" in named else _type_of(named)
    if "const" in rule:
        return _code(json.dumps(rule["const"]))
    if "enum" in rule:
        return ", ".join(_code(json.dumps(value)) for value in rule["enum"])
    if options := rule.get("anyOf") or rule.get("oneOf"):
        return " or ".join(_type_of(option) for option in options)
    kinds = rule.get("type", "any")
    text = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if "properties" in rule:
        return f"{text} of {', '.join(map(_code, rule['properties']))}"
    return f"{text} of {_type_of(rule['items'])}" if "array" in text and "items" in rule else text


def _at(reference: str) -> Any:
    """Return the part of the summary's schema that a `$ref` means; rows have none."""
    part: Any = load_schema("summary")
    for name in reference.removeprefix("#/").split("/"):
        part = part[name]
    return part


def _flag(option: Option) -> str:
    return _code(f"{option.flag}{'=' + option.metavar if option.metavar else ''}")


def _table(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield _line(head)
    yield _line(("---",) * len(head))
    yield from map(_line, lines)


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _code(text: str) -> str:
    return f"`{text}`"
