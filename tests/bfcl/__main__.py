"""`python -m tests.bfcl [--ask]`: compares BFCL's checker with ours on the same replies, and writes the page.

With `--ask` the embedded model is asked again first, and its replies are kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bfcl.agreement import MODEL_REPLIES, UNEXPLAINED, compare, load_converter
from tests.bfcl.page import PAGE, render

ASKED = 182
"""The model is asked every n-th case of each category."""
MAX_TOKENS = 160
MODEL = "llama_cpp/smollm2:135m"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; the exit status is 1 if a disagreement is in no class."""
    parser = argparse.ArgumentParser(prog="python -m tests.bfcl", description=__doc__)
    parser.add_argument("--ask", action="store_true", help="ask the embedded model first")
    options = parser.parse_args(arguments)
    converter = load_converter()
    with tempfile.TemporaryDirectory() as folder:
        if options.ask:
            lines = [json.dumps(line, ensure_ascii=False) for line in _asked(Path(folder))]
            MODEL_REPLIES.write_text("\n".join([*lines, ""]), "utf-8")
        tally = compare(Path(folder))
    converted = {category: converter.convert(category) for category in converter.CATEGORIES}
    counts = {category: (len(prompts), skipped) for category, (prompts, skipped) in converted.items()}
    PAGE.write_text(render(tally, counts), "utf-8")
    for case, kind in tally.classes.get(UNEXPLAINED, ()):
        print(f"{case}, {kind}: {UNEXPLAINED}")
    return 1 if UNEXPLAINED in tally.classes else 0


def _asked(folder: Path) -> Iterator[dict[str, object]]:
    """Ask the embedded model a sample of the cases in a session of pytest; yield its replies."""
    converter = load_converter()
    cases = [case for category in converter.CATEGORIES for case in converter.convert(category)[0][::ASKED]]
    prompts = [{**case, "max_output_tokens": MAX_TOKENS} for case in cases]
    suite = folder / "prompts_sample.json"
    suite.write_text(json.dumps(prompts), "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(suite),
        f"--openclaw-models={MODEL}",
        "--openclaw-run-id=sample",
    ]
    subprocess.run([*command, f"--rootdir={folder}", "--tb=no", "-q"], cwd=folder, check=False)
    rows = (folder / "runs/sample/results.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, rows):
        if row["availability_status"] == "ok":
            calls = [[call["name"], call["arguments"]] for call in row["tool_call_details"]]
            yield {"id": row["prompt_id"], "calls": calls, "text": row["raw_output"]}


if __name__ == "__main__":
    sys.exit(main())
