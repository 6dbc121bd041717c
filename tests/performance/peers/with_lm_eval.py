"""Asks N items through lm-eval's own chat client: `with_lm_eval.py BASE_URL N CONCURRENCY FOLDER`.

Run it with the Python of an environment that has lm-eval; nothing of this project is imported.
Its own command line would index all its tasks first, which takes seconds and is left out here.
"""

import json
import os
import sys
from pathlib import Path

TASK = """\
task: perf
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: []
  max_gen_toks: 1024
  temperature: 0
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""


def main(base: str, n: int, concurrency: int, folder: Path) -> None:
    """Evaluate, and end with an error unless every answer was right."""
    os.environ |= {
        "HF_HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "OPENAI_API_KEY": "none",
    }
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    answers = [f"HEARTBEAT_OK item-{i:06d}" for i in range(n)]
    data = folder / f"{n}.jsonl"
    data.write_text(
        "".join(json.dumps({"prompt": f"Reply with exactly: {a}", "answer": a}) + "\n" for a in answers)
    )
    tasks = folder / f"tasks-{n}"
    tasks.mkdir(exist_ok=True)
    (tasks / "perf.yaml").write_text(TASK.format(data=data))
    outcome = simple_evaluate(
        model="local-chat-completions",
        model_args={
            "model": "mock", "base_url": f"{base}/chat/completions", "num_concurrent": concurrency, "max_retries": 1,
            "tokenizer_backend": None,
        },
        tasks=["perf"],
        task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
        apply_chat_template=True, bootstrap_iters=0,
    )  # fmt: skip
    (folder / "samples.json").write_text(json.dumps(outcome["samples"], default=str))
    right = outcome["results"]["perf"]["exact_match,none"]
    if right != 1 or len(outcome["samples"]["perf"]) != n:
        sys.exit(f"{right} of {len(outcome['samples']['perf'])} samples were right")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
