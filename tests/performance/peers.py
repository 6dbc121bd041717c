"""Other programs that ask: `peers.py NAME COMMAND BASE_URL CONCURRENCY FOLDER`; a wrong answer is an error."""

import asyncio
import json
import os
import sys
from pathlib import Path
from time import perf_counter


async def loop_over_httpx2(base, concurrency, folder, answers):
    """Ask through the loop that a careful user would write: tasks that share a client and read each line."""
    import httpx2

    async def ask(answer):
        body = {
            "model": "mock", "messages": [{"role": "user", "content": f"Reply with exactly: {answer}"}],
            "temperature": 0, "max_tokens": 1024, "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        text, first, began = "", 0.0, perf_counter()
        async with client.stream("POST", f"{base}/chat/completions", json=body) as response:
            async for line in response.raise_for_status().aiter_lines():
                payload = line.removeprefix("data: ")
                for choice in json.loads(payload)["choices"] if payload not in ("", "[DONE]") else ():
                    if content := choice["delta"].get("content"):
                        first = first or perf_counter()
                        text += content
        ttft_ms, e2e_ms = (first - began) * 1000, (perf_counter() - began) * 1000
        assert text == answer
        return {"prompt_id": answer.split()[1], "ttft_ms": ttft_ms, "e2e_ms": e2e_ms, "objective_pass": True}

    async def work():
        for answer in waiting:
            file.write(json.dumps(await ask(answer)) + "\n")

    waiting, limits = iter(answers), httpx2.Limits(max_connections=concurrency)
    with (folder / "results.jsonl").open("w", encoding="utf-8", buffering=1) as file:
        async with httpx2.AsyncClient(limits=limits, timeout=60) as client, asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())


def inspect_ai(base, concurrency, folder, answers):
    from inspect_ai import Task, dataset, scorer, solver
    from inspect_ai import eval as evaluate

    os.environ |= {"MOCK_BASE_URL": base, "MOCK_API_KEY": "none"}
    samples = [dataset.Sample(input=f"Reply with exactly: {answer}", target=answer) for answer in answers]
    (log,) = evaluate(
        Task(dataset.MemoryDataset(samples), solver=solver.generate(), scorer=scorer.exact()),
        model="openai-api/mock/mock", max_connections=concurrency, max_samples=concurrency, display="none",
        log_dir=str(folder), temperature=0, max_tokens=1024,
    )  # fmt: skip
    assert log.results, log.error
    assert (log.results.completed_samples, log.results.scores[0].metrics["mean"].value) == (len(answers), 1)


def lm_eval(base, concurrency, folder, answers):
    """Ask through lm-eval's chat client; its command would index all its tasks first, for seconds."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": "none"}
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"answer": answer}) + "\n" for answer in answers))
    task = {
        "task": "perf", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test", "output_type": "generate_until", "doc_to_target": "{{answer}}",
        "doc_to_text": "Reply with exactly: {{answer}}", "metric_list": [{"metric": "exact_match"}],
        "generation_kwargs": {"until": [], "max_gen_toks": 1024, "temperature": 0},
    }  # fmt: skip
    url, tasks = f"{base}/chat/completions", TaskManager(include_defaults=False)
    client = {"model": "mock", "base_url": url, "num_concurrent": concurrency, "tokenizer_backend": None}
    how = {"task_manager": tasks, "apply_chat_template": True, "bootstrap_iters": 0}
    done = simple_evaluate("local-chat-completions", client, [task], **how)
    (folder / "samples.json").write_text(json.dumps(done["samples"], default=str))
    assert len(done["samples"]["perf"]) == len(answers)
    assert done["results"]["perf"]["exact_match,none"] == 1


def promptfoo(base, concurrency, folder, answers):
    """Become promptfoo's command, which ends with an error unless every answer is right."""
    settings = {"apiBaseUrl": base, "apiKey": "none", "temperature": 0, "max_tokens": 1024}
    config = {
        "prompts": ["Reply with exactly: {{answer}}"],
        "providers": [{"id": "openai:chat:mock", "config": settings}],
        "tests": [{"vars": {"answer": a}, "assert": [{"type": "equals", "value": a}]} for a in answers],
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    os.environ |= {f"PROMPTFOO_DISABLE_{one}": "1" for one in ("TELEMETRY", "UPDATE", "REMOTE_GENERATION")}
    words = f"eval -c config.json -j {concurrency} -o out.json --no-cache --no-table".split()
    os.execv(sys.argv[2], [sys.argv[2], *words])


if __name__ == "__main__":
    name, _, base, concurrency, folder = sys.argv[1:]
    prompts = json.loads(Path(folder, "prompts_perf.json").read_text("utf-8"))
    asked = base, int(concurrency), Path(folder), [prompt["validator"]["value"] for prompt in prompts]
    if name == "httpx2":
        asyncio.run(loop_over_httpx2(*asked))
    else:
        {"inspect-ai": inspect_ai, "lm-eval": lm_eval, "promptfoo": promptfoo}[name](*asked)
