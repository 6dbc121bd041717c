"""Write true output into pages: `python -m tests.docs.refresh docs/tutorial.md docs/tutorial-gate.md`.

Every command of a page that is not marked `elsewhere` is run, and its output replaces the output that the
page shows, even if that is only `…`. Pages continue each other in one folder. The published JSON Schemas of a run's files are rewritten too.
"""

import json
import re
import sys
import tempfile
from inspect import cleandoc
from pathlib import Path

import msgspec

from pytest_openclaw.conclusions.summary import Summary
from pytest_openclaw.values import run_files
from pytest_openclaw.values.parts import added_to, whole
from pytest_openclaw.values.prompts import Labels, PromptEntry, part_keys
from pytest_openclaw.values.rows import ROW_KEYS, Record
from pytest_openclaw.values.run_files import ConfigFile, InventoryFile
from tests.docs.pages import File, cut, read_page
from tests.docs.terminal import Terminal

SCHEMAS = Path(run_files.__file__).parent / "schemas"

READERS_FOLDER = "/home/you/assistant"


def refreshed(text, terminal):
    lines = text.splitlines()
    moved = 0
    for block in read_page(text):
        if isinstance(block, File):
            terminal.write(block)
        elif not block.elsewhere:
            output = terminal.run(block.line).stdout.replace(str(terminal.folder), READERS_FOLDER)
            if block.shown:
                new = [f"{block.indent}{line}".rstrip() for line in cut(output, block.begins_at)]
                start = block.start + moved
                lines[start : start + len(block.shown)] = new
                moved += len(new) - len(block.shown)
    return "\n".join([*lines, ""])


def made_schemas():
    kinds = {"row": Record, "config": ConfigFile, "inventory": InventoryFile}
    made = {name: made_schema(kind) for name, kind in kinds.items()}
    return {**made, "summary": made_schema(Summary, inline=False)}


_ATTRIBUTE = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def made_schema(kind, *, inline=True):
    """Return the schema of a row or file; unless inline, definitions are in `$defs`, all their keys required."""
    template = "{name}" if inline else "#/$defs/{name}"
    (top,), parts = msgspec.json.schema_components([whole(kind)], ref_template=template)
    name = top["$ref"].rpartition("/")[2]
    if kind is Record:
        labels = cleandoc(Labels.__doc__).partition("\nAttributes:\n")[2]
        added = added_to(PromptEntry)
        described = "\n".join([labels, *(f"    {label}: {key.about}" for label, key in added.items())])
        parts[name]["description"] = f"{cleandoc(Record.__doc__)}\n{described}"
        parts[name]["properties"] |= {label: msgspec.json.schema(key.kind) for label, key in added.items()}
    schema = _inlined(parts.pop(name), parts)
    if kind is Record:
        schema["required"] = [*ROW_KEYS, *part_keys()]
        schema["properties"] = {key: schema["properties"][key] for key in schema["required"]}
        description = "Added by a plugin's pytest_openclaw_record; no field of ours begins so."
        schema["patternProperties"] = {"^x_[a-z0-9_]+$": {"description": description}}
    if not inline:
        schema["$defs"] = {name: _inlined(part, parts) for name, part in sorted(parts.items())}
        for part in (schema, *schema["$defs"].values()):
            part["required"] = [*part["properties"]]
    title = schema.pop("description").removesuffix(".")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _inlined(rule, parts):
    """Return a schema with its definitions in place, and with `null` among types and values."""
    if isinstance(rule, list):
        return [_inlined(one, parts) for one in rule]
    if not isinstance(rule, dict):
        return rule
    if rule.get("$ref") in parts:
        return _inlined(parts[rule["$ref"]], parts)
    made = {key: _inlined(value, parts) for key, value in rule.items() if key != "default"}
    if "properties" in made and "title" in made:
        _describe(made)
    if made.get("required") == []:
        del made["required"]
    match made.get("anyOf"):
        case [{"enum": values}, {"type": "null"}]:
            return {"enum": [*values, None]}
        case [{"type": kind, **rest}, {"type": "null"}]:
            return {"type": [kind, "null"], **rest}
    return made


def _describe(rule):
    """Move the descriptions of keys from a class's docstring to the keys."""
    del rule["title"]
    text = cleandoc(rule.pop("description", ""))  # Python 3.13 does this itself
    summary, _, attributes = text.partition("\n\nAttributes:\n")
    rule["description"] = summary.partition("\n\n")[0]
    for names, meaning in _ATTRIBUTE.findall(attributes):
        for name in names.split(", "):
            if name in rule["properties"]:
                text = " ".join(meaning.split()).replace("None", "null")
                rule["properties"][name]["description"] = text[0].upper() + text[1:]


def main(pages):
    for name, schema in made_schemas().items():
        SCHEMAS.joinpath(f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n", "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for page in map(Path, pages):
            page.write_text(refreshed(page.read_text("utf-8"), Terminal(Path(folder))), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
