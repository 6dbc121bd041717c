"""Writes the single-turn and live cases of the Berkeley Function Calling Leaderboard (BFCL) as suites.

    pip install --no-deps bfcl-eval==2026.3.23
    python bfcl_suites.py benchmarks/bfcl                  # all 13 categories
    python bfcl_suites.py benchmarks/bfcl live_simple      # one

The cases are read from the installed package. A case that no suite can express is named with the reason; one
whose own answer its tool refuses is written with the tag `refused_answer` and as a known failure.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

NO_ANSWERS = ("irrelevance", "live_irrelevance", "live_relevance")
"""In these categories no call, or any call, is right."""
CATEGORIES = (
    *("simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    *NO_ANSWERS,
)

TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""BFCL's names of types that JSON Schema calls otherwise."""
JSON_TYPES = ("string", "integer", "number", "boolean", "array", "object")
EMPTY: dict[str, list[Any]] = {"string": [""], "any": [""], "array": [[]]}
"""What BFCL accepts of each type where its answer has `""`, besides that the argument is absent."""
LANGUAGES = {"simple_java": "Java", "simple_javascript": "JavaScript"}
"""In these categories an argument is code, in a string."""
TEXTS = ("String", "any")
"""The types of code that BFCL compares as a text."""
SUFFIXES = {"long": "[lL]", "Bigint": "n"}

Json = dict[str, Any]


class NotExpressibleError(Exception):
    """No suite can express a case; the text says why."""


def main(folder: str, *categories: str) -> None:
    """Write a suite for each category into a folder."""
    if unknown := [one for one in categories if one not in CATEGORIES]:
        raise SystemExit(f"There is no category {unknown[0]}. Name some of {', '.join(CATEGORIES)}.")
    Path(folder).mkdir(parents=True, exist_ok=True)
    for category in categories or CATEGORIES:
        prompts, skipped = convert(category)
        path = Path(folder, f"prompts_bfcl_{category}.json")
        suite = {"named_only": True, "prompts": prompts}
        path.write_text(json.dumps(suite, ensure_ascii=False, indent=1), "utf-8")
        refused = sum("refused_answer" in prompt.get("tags", ()) for prompt in prompts)
        print(f"{path}: {len(prompts)} prompts, {refused} with an answer that their tool refuses")
        for case, reason in skipped.items():
            print(f"  {case} is not converted: {reason}")


def convert(category: str) -> tuple[list[Json], dict[str, str]]:
    """Return the prompts of a category, and the cases that cannot be converted, with the reason."""
    answers = {} if category in NO_ANSWERS else dict(read(category, "possible_answer"))
    prompts, skipped = [], {}
    for case, entry in read(category):
        try:
            prompts.append(prompt_of(category, entry, answers.get(case, {}).get("ground_truth")))
        except NotExpressibleError as reason:
            skipped[case] = str(reason)
    return prompts, skipped


def read(category: str, folder: str = ".") -> Iterator[tuple[str, Json]]:
    """Yield the entries of a category with their ids; those in `possible_answer` are the right calls."""
    package = find_spec("bfcl_eval")
    if package is None or package.origin is None:
        raise SystemExit("bfcl-eval is not installed: pip install --no-deps bfcl-eval==2026.3.23")
    path = Path(package.origin).parent / "data" / folder / f"BFCL_v4_{category}.json"
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        yield entry["id"], entry


def prompt_of(category: str, entry: Json, answer: Sequence[Json] | None) -> Json:
    """Return a case as a prompt of a suite."""
    *earlier, question = entry["question"][0]
    language = LANGUAGES.get(category)
    tools = {tool["name"]: tool_of(tool, language) for tool in entry["function"]}
    prompt: Json = {
        "id": entry["id"],
        "category": category,
        "prompt": question["content"],
        "tools": list(tools.values()),
        "validator": {"type": "tool_call", "calls": []},
    }
    if system := "\n\n".join(one["content"] for one in earlier if one["role"] == "system"):
        prompt["system"] = system
    if talk := [one for one in earlier if one["role"] != "system"]:
        prompt["messages"] = talk
    if category == "live_relevance":
        prompt["validator"]["calls"] = [{"name": [tool["name"] for tool in tools.values()]}]
    if answer is None:
        return prompt
    specs = {tool["name"]: tool["parameters"]["properties"] for tool in entry["function"]}
    made = [(name, arguments) for call in answer for name, arguments in call.items()]
    calls = [call_of(tools[name]["name"], arguments, specs[name], language) for name, arguments in made]
    prompt["validator"].update(calls=calls, exact=True)
    if any(is_refused(call, tools[name]) for call, (name, _) in zip(calls, made, strict=True)):
        prompt["tags"] = ["refused_answer"]
        prompt["xfail"] = [{"reason": "the tool refuses BFCL's own answer", "strict": True}]
    return prompt


def tool_of(tool: Json, language: str | None) -> Json:
    """Return a tool; most APIs allow no dot in its name."""
    parameters = tool["parameters"]
    if language:
        code = {name: as_code(spec, language) for name, spec in parameters["properties"].items()}
        parameters = {**parameters, "properties": code}
    return {
        "name": tool["name"].replace(".", "_"),
        "description": tool["description"],
        "parameters": schema_of(parameters),
    }


def schema_of(spec: Json) -> Json:
    """Return a parameter's description as a JSON Schema; `any` becomes a schema without a type."""
    schema = {key: value for key, value in spec.items() if key not in ("type", "properties", "items")}
    kind = TYPES.get(spec["type"], spec["type"])
    if kind in JSON_TYPES:
        schema["type"] = kind
    if "properties" in spec:
        schema["properties"] = {name: schema_of(part) for name, part in spec["properties"].items()}
    if "items" in spec:
        schema["items"] = schema_of(spec["items"])
    if kind == "array" and not any(isinstance(value, list) for value in schema.get("enum", [[]])):
        schema.setdefault("items", {})["enum"] = schema.pop("enum")  # it lists items, and no whole array
    return schema


def as_code(spec: Json, language: str) -> Json:
    """Return a parameter whose value is written as code."""
    kind = "value of any type" if spec["type"] == "any" else spec["type"]
    of = f" of {spec['items']['type']}" if "items" in spec else ""
    parts = f" with the properties {json.dumps(spec['properties'])}" if "properties" in spec else ""
    note = f"A {language} {kind}{of}{parts}, written as code in a string."
    return {"type": "string", "description": f"{spec['description']} {note}"}


def call_of(name: str, arguments: Json, specs: Json, language: str | None) -> Json:
    """Return a required call, with no other arguments than those of the answer."""
    wanted, code, required, allowed = {}, {}, [], []
    for argument, values in arguments.items():
        if not values:
            raise NotExpressibleError(f"no value of {argument} is right")
        if argument not in specs and "" not in values:
            raise NotExpressibleError(
                f"its answer needs the parameter {argument}, which {name} does not have"
            )
        if argument not in specs:
            continue
        spec = specs[argument]
        if language and not (spec["type"] in TEXTS or all(isinstance(one, str) for one in values)):
            code[argument] = {"pattern": f"^(?:{pattern_of(values, spec['type'], language)})$"}
            required += [] if "" in values else [argument]
        elif right := [value for one in values for value in right_values(one, spec, as_text=bool(language))]:
            wanted[argument] = {"any_of": right, "optional": "" in values}
        else:
            continue
        allowed.append(argument)
    matching: Json = {"propertyNames": {"enum": allowed}} if allowed else {"maxProperties": 0}
    if code:
        matching |= {"properties": code, "required": required}
    loose = {"ignore_case": True, "ignore_punctuation": True}
    return {"name": name, "arguments": wanted, **loose, "matching": matching}


def right_values(one: Any, spec: Json, *, as_text: bool = False) -> list[Any]:
    """Return a right value as the tool gets it; none for a `""` that only marks the argument as optional."""
    named = "string" if as_text else spec.get("type", "any")
    kind = TYPES.get(named, named)
    if one == "":
        return EMPTY.get(kind, [])
    if isinstance(one, dict):
        return [object_of(one, spec.get("properties", {}))]
    if isinstance(one, list) and any(isinstance(item, dict) for item in one):
        return [[object_of(item, spec["items"].get("properties", {})) for item in one]]
    if kind == "string" and not isinstance(one, str):
        return ["" if one is None else json.dumps(one)]  # OpenClaw converts what is no text
    return [one]


def object_of(answer: Json, specs: Json) -> Json:
    """Return a right object; each of its keys has a list of right values."""
    found: Json = {}
    for key, values in answer.items():
        if not isinstance(values, list | str):
            found[key] = values  # a number deeper than BFCL compares
            continue
        listed = [values] if isinstance(values, str) else values
        right = [value for one in listed for value in right_values(one, specs.get(key, {}))]
        found[key] = {"any_of": right or [None], "optional": "" in listed}
    return found


def pattern_of(values: Sequence[Any], kind: str, language: str) -> str:
    """Return a pattern of the ways in which any of some values may be written as code."""
    ways = [code_of(one, language) + SUFFIXES.get(kind, "") for one in values if one != ""]
    return "|".join(ways)


def code_of(value: Any, language: str) -> str:
    """Return a pattern of the ways to write a value as code."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return rf"{value:.0f}(?:\.0+)?" if float(value).is_integer() else re.escape(str(value))
    if isinstance(value, str):
        return rf"[\"']?{re.escape(value)}[\"']?"
    if isinstance(value, Mapping):
        return _object_code(value, language)
    items = r"\s*,\s*".join(code_of(item, language) for item in value)
    if language == "Java":
        return rf"new\s+\w+(?:\[\]|<\w*>)\s*[({{]\s*(?:(?:Arrays\.asList|List\.of)\s*\(\s*)?{items}[\s)}}]*"
    return rf"(?:\[|new\s+Array\()\s*{items}\s*[\])]"


def _object_code(value: Mapping[str, Any], language: str) -> str:
    """Return a pattern of an object whose entries come in any order; each has a list of right values."""
    entries = []
    for key, values in value.items():
        right = "|".join(code_of(one, language) for one in ([values] if isinstance(values, str) else values))
        name = rf"[\"']?{re.escape(key)}[\"']?"
        java, script = rf"put\(\s*{name}\s*,\s*(?:{right})\s*\)\s*;?", rf"{name}\s*:\s*(?:{right})"
        entries.append(java if language == "Java" else script)
    between = r"\s*" if language == "Java" else r"\s*,\s*"
    body = "|".join(between.join(order) for order in permutations(entries))
    if language == "Java":
        return rf"new\s+HashMap<[^>]*>\s*\(\s*\)[\s{{]*(?:{body})[\s}};]*"
    return rf"\{{\s*(?:{body})\s*\}}"


def is_refused(call: Json, tool: Json) -> bool:
    """Whether a tool refuses every right value of an argument that must be there."""
    schemas, required = tool["parameters"]["properties"], tool["parameters"].get("required", ())
    wanted, as_code = call["arguments"], call["matching"].get("properties", {})
    needed = {*required, *(name for name, right in wanted.items() if not right["optional"])} - {*as_code}
    return any(
        not any(Draft202012Validator(schemas[name]).is_valid(example(value)) for value in right["any_of"])
        for name in needed
        for right in [wanted.get(name, {"any_of": []})]
    )


def example(wanted: Any) -> Any:
    """Return a value that fits: the first of all alternatives."""
    if isinstance(wanted, dict) and "any_of" in wanted:
        return example(wanted["any_of"][0])
    if isinstance(wanted, dict):
        return {name: example(one) for name, one in wanted.items()}
    return [example(one) for one in wanted] if isinstance(wanted, list) else wanted


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    main(*sys.argv[1:])
