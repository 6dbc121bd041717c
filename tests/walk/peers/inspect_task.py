"""The walk's tool prompts for inspect; tests/walk/peers.py runs it."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

FILES = ("notes", "todo", "plan", "budget", "letter", "recipe", "diary", "agenda", "report", "invoice")


@tool
def read():
    """Offer a tool that is never carried out."""

    async def execute(path: str) -> str:
        """Read a file.

        Args:
            path: the file.
        """
        return path

    return execute


@scorer(metrics=[accuracy(), stderr()])
def right_call():
    """Accept exactly the call that is due, or none."""

    async def score(state, target):
        calls = [(call.function, call.arguments) for call in state.output.message.tool_calls or []]
        due = [("read", {"path": target.text})] if target.text else []
        return Score(value=CORRECT if calls == due else INCORRECT, explanation=str(calls))

    return score


@task
def read_or_thank():
    """Ask the ten prompts that need a call and the four that forbid one."""
    reads = [Sample(input=f"Read {name}.md.", target=f"{name}.md") for name in FILES]
    thanks = [Sample(input=f"Thank Ada for letter {n}.", target="") for n in range(4)]
    return Task(
        dataset=reads + thanks,
        solver=[use_tools(read()), generate(tool_calls="none")],
        scorer=right_call(),
    )
