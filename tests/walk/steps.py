"""Typical tasks, each with parts of its screen; and a mistake."""

from dataclasses import dataclass

MODELS = "--openclaw-models=qwen3:8b,llama3.2:3b,smollm2:135m"


@dataclass(frozen=True)
class Step:
    """A command, its exit status, parts of its output in any width, and the start of its first line."""

    name: str
    line: str
    status: int
    says: tuple[str, ...]
    first: str = ""


MISTAKE = "pytest benchmarks --openclaw-models=qwen3:80b"
TASKS = (
    Step("run", f"pytest benchmarks {MODELS}", 1, ("T1", "wrote"), first="qwen3:8b"),
    Step("list", f"pytest benchmarks --collect-only -q {MODELS}", 0, ("T0[ollama_native/qwen3:8b]", "69 tests collected")),
    Step("plan-a-run", f"pytest benchmarks --openclaw-dry-run {MODELS}", 0, ("qwen3:8b",)),
    Step("one-kind-of-evidence", f"pytest benchmarks/prompts_shell.toml {MODELS}", 1, ("calls found in texts",), first="qwen3:8b"),
    Step("misses", "pytest-openclaw show second --failed", 0, ("why", "smollm2:135m"), first="qwen3:8b"),
    Step("one-cell", 'pytest-openclaw show second "T1[ollama_native/smollm2:135m]"', 0, ("Read todo.md.", "verdict")),
    Step("compare", "pytest-openclaw compare first second", 0, ("no difference seen",)),
    Step("history", "pytest-openclaw history", 0, ("passed", "tier", "first", "second")),
    Step("route", "pytest-openclaw route second", 0, ("qwen3:8b",)),
    Step("report", "pytest-openclaw report second --baseline first", 0, ("69 cells on 3 targets", "report.html")),
)  # fmt: skip
