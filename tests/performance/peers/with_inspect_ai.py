"""Asks N items through inspect-ai, as its documentation advises: `with_inspect_ai.py BASE_URL N CONCURRENCY FOLDER`.

Run it with the Python of an environment that has inspect-ai; nothing of this project is imported.
"""

import os
import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate


def main(base: str, n: int, concurrency: int, folder: Path) -> None:
    """Evaluate, and end with an error unless every answer was right."""
    os.environ |= {"MOCK_BASE_URL": base, "MOCK_API_KEY": "none"}
    answers = [f"HEARTBEAT_OK item-{i:06d}" for i in range(n)]
    samples = [Sample(input=f"Reply with exactly: {answer}", target=answer) for answer in answers]
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=exact(), name="perf")
    (log,) = evaluate(
        task, model="openai-api/mock/mock", max_connections=concurrency, max_samples=concurrency, display="none",
        log_dir=str(folder), temperature=0, max_tokens=1024,
    )  # fmt: skip
    if log.status != "success" or log.results is None:
        sys.exit(f"it ended with {log.status}: {log.error}")
    right = log.results.scores[0].metrics["mean"].value
    if right != 1 or log.results.completed_samples != n:
        sys.exit(f"{right} of {log.results.completed_samples} samples were right")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
