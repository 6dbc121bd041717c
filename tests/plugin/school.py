"""A project whose provider records its requests, and helpers for tests of resumed runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

NOOP = {"type": "noop"}
YES = {"type": "exact", "value": "yes"}

# Answers "say X" with X and "long N" with N letters, and records its requests. Of the files, one entry
# per line, down.txt names the X that end in a fault, and hang.txt calls such as "a say X" that do not end.
TEACHER = """
import asyncio
import os
import pathlib
from pytest_openclaw import CallFailed, Provider, Reply, faults

FOLDER = pathlib.Path(__file__).parent


def note(word):
    with open(FOLDER / "asked.txt", "a") as file:
        file.write(word + "\\n")


def listed(name):
    return (FOLDER / name).read_text().splitlines() if (FOLDER / name).exists() else ()


class Teacher(Provider):
    name = "teacher"
    warms_up = True

    async def ask(self, request):
        if request.max_output_tokens == 1:
            note(f"warm-up {request.model}")
            return Reply(text="ready")
        note(f"{request.model} {request.prompt}")
        with open(FOLDER / "streamed.txt", "a") as file:
            file.write(f"{request.stream}\\n")
        wanted = request.prompt.partition(" ")[2]
        if wanted in listed("down.txt"):
            raise CallFailed(faults.timed_out("teacher", 1.0))
        call = f"{request.model} {request.prompt}"
        while call in listed("hang.txt"):
            await asyncio.sleep(0.02)
        if request.prompt.startswith("long "):
            return Reply(text="x" * int(wanted))
        return Reply(text=wanted, finish_reason="stop", output_tokens=len(wanted))

    async def fingerprint(self, model):
        note(f"fingerprint {model}")
        return {"version": (FOLDER / "version.txt").read_text() if (FOLDER / "version.txt").exists() else "1"}

    def describe(self):
        return {"base_url": os.environ.get("TEACHER_URL", "http://one"), "key_env": os.environ.get("TEACHER_KEY")}

    async def models(self):
        note("models")
        return ("b", "a")


def pytest_openclaw_providers():
    return [Teacher]
"""


def asked(project: Any) -> Counter[str]:
    """Return the provider's requests since the last call of this function."""
    path = project.folder / "asked.txt"
    words = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return Counter(words)


def lines(project: Any, run: str = "r") -> list[bytes]:
    """Return the rows of a run, byte for byte."""
    return (project.folder / "runs" / run / "results.jsonl").read_bytes().splitlines(keepends=True)


def begin(project: Any, *args: str, models: str = "teacher/a") -> Any:
    """Run the whole suite, as the run r."""
    return project.run("--openclaw-run-id=r", *args, models=models)


def resume(project: Any, *args: str, name: str = "r") -> Any:
    """Resume a run."""
    return project.run(f"--openclaw-resume={name}", *args, models=None)


def cut(project: Any, n: int, torn: bytes = b"") -> None:
    """Leave of a run only what a kill after `n` rows leaves."""
    run = project.folder / "runs" / "r"
    (run / "results.jsonl").write_bytes(b"".join(lines(project)[:n]) + torn)
    for name in ("summary.json", "summary.md"):
        (run / name).unlink()


SUITE = {
    "P1": ("say yes", YES),
    "P2": ("say no", YES),
    "P3": ("say maybe", NOOP),
    "P4": ("say ", YES),
    "P5": ("say sure", YES),
}


def timeless(value: Any) -> Any:
    """A summary without what differs between any two runs: times and derived values, machine, run id."""
    names = {"run_id", "generated_at_ms", "wall_clock_ms", "latency_ms", "ttft_ms", "tokens_per_s",
             "latency_intervals_95", "ttft_intervals_95", "tokens_per_s_interval_95", "resources_before", "resources_after",
             "openclaw_turn", "slowest"}  # fmt: skip
    if isinstance(value, dict):
        kept = {key: timeless(item) for key, item in value.items() if key not in names}
        if best := kept.get("best"):  # its targets are in the order of their speed
            kept["best"] = {**best, "targets": sorted(best["targets"])}
        return kept
    return [timeless(item) for item in value] if isinstance(value, list) else value
