"""The files of a run, checked with the published schemas."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jsonschema

from pytest_openclaw.values.run_files import load_schema


@cache
def validator_of(name):
    """Return the validator of a published schema; checking the schema itself is the slow part."""
    schema = load_schema(name)
    return jsonschema.validators.validator_for(schema)(schema)


class RunFiles:
    @property
    def lines(self):
        return (self.run_dir / "results.jsonl").read_bytes().splitlines(keepends=True)

    @property
    def rows(self):
        rows = [json.loads(line) for line in self.lines]
        for row in rows:
            validator_of("row").validate(row)
        return rows

    def row(self, prompt_id):
        (row,) = (row for row in self.rows if row["prompt_id"] == prompt_id)
        return row

    @property
    def summary(self):
        summary = self.load("summary.json")
        validator_of("summary").validate(summary)
        return summary

    @property
    def page(self):
        return (self.run_dir / "summary.md").read_text("utf-8")

    def load(self, name):
        return json.loads((self.run_dir / name).read_text("utf-8"))


@dataclass(frozen=True)
class StoredRun(RunFiles):
    run_dir: Path
