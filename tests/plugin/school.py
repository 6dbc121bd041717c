"""A project whose provider records its requests, and helpers for tests of resumed runs."""

from tests.plugin.conftest import NOOP, YES

# Answers "say X" with X. Of two files, with one entry per line, down.txt names the X
# that end in a fault, and hang.txt calls such as "a say X" that do not end.
TEACHER = """
import os


def listed(name):
    return (FOLDER / name).read_text().splitlines() if (FOLDER / name).exists() else ()


class Teacher(Provider):
    name = "teacher"
    warms_up = True

    async def ask(self, request):
        if request.max_output_tokens == 1:
            note("warm-up", request.model)
            return Reply(text="ready")
        note(request.model, request.prompt)
        with open(FOLDER / "streamed.txt", "a") as file:
            file.write(f"{request.stream}\\n")
        wanted = request.prompt.partition(" ")[2]
        if wanted in listed("down.txt"):
            raise CallFailed(faults.timed_out("teacher", 1.0))
        call = f"{request.model} {request.prompt}"
        while call in listed("hang.txt"):
            await asyncio.sleep(0.02)
        return Reply(text=wanted, finish_reason="stop", output_tokens=len(wanted))

    async def fingerprint(self, model):
        note("fingerprint", model)
        return {"version": "1"}

    async def models(self):
        return ("b", "a")


PROVIDERS.append(Teacher)
"""


def begin(project, *args, models="teacher/a"):
    return project.run("--openclaw-run-id=r", *args, models=models)


def resume(project, *args):
    return project.run("--openclaw-resume=r", *args, models=None)


def cut(project, n, torn=b""):
    run = project.stored("r")
    (run.run_dir / "results.jsonl").write_bytes(b"".join(run.lines[:n]) + torn)
    for name in ("summary.json", "summary.md"):
        (run.run_dir / name).unlink()


SUITE = {
    "P1": ("say yes", YES),
    "P2": ("say no", YES),
    "P3": ("say maybe", NOOP),
    "P4": ("say ", YES),
    "P5": ("say sure", YES),
}


def timeless(value):
    """A summary without what differs between any two runs: times and what follows from them, machine, run id."""
    names = {"run_id", "generated_at_ms", "wall_clock_ms", "latency_ms", "ttft_ms", "tokens_per_s",
             "latency_intervals_95", "ttft_intervals_95", "tokens_per_s_interval_95", "resources_before", "resources_after",
             "openclaw_turn"}  # fmt: skip
    if isinstance(value, dict):
        kept = {key: timeless(item) for key, item in value.items() if key not in names}
        if best := kept.get("best"):  # its targets are in the order of their speed
            kept["best"] = {**best, "targets": sorted(best["targets"])}
        return kept
    return [timeless(item) for item in value] if isinstance(value, list) else value
