"""Texts by which a model, a server or a suite might break out of a page."""

from dataclasses import replace

from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import record
from tests.unit.runs.stored_runs import definition, store

TEXTS = {
    "script": "<script>window.pwned = 1</script>",
    "end-of-script": "</script><script>window.pwned = 2</script>",
    "end-in-any-case": "</ScRiPt\t><img src=x onerror='window.pwned = 3'>",
    "comment": "<!--<script>window.pwned = 4</script>-->",
    "half-a-comment": "<!-- <script",
    "image": "<img src=x onerror=\"window.pwned = 5\">",
    "svg": "<svg onload=window.pwned=6><a href=javascript:window.pwned=7>x</a></svg>",
    "template": "{{script}} {{style}} ${window.pwned=8}",
    "entities": "&lt;b&gt; &amp;amp; &#x3c;i&#x3e; &nbsp;",
    "quotes": "\" onfocus=\"window.pwned=9\" x='` \\",
    "markup": "<b>bold</b><style>body{display:none}</style><base href=//x.example>",
    "directions": "user\u202egpj.exe\u2066\u2069 \u200f\u200e\u061c",
    "invisible": "ze\u200bro \ufeffwi\u2060dth soft\u00adhyphen \U000e0041tag",
    "controls": "bell\x07 escape\x1b[31mred\x1b[0m null\x00 c1\x9b31m del\x7f",
    "line-ends": "one\u2028two\u2029three\x85four\rfive\x0bsix\x0cseven",
    "odd-code-points": "\ufffe\uffff\ufff9\ufffb \U0010ffff \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "combining": "Z" + "͑̓ͤͣ" * 200,
    "arabic": "مرحبا بالعالم, then English",
    "prototype": "__proto__ constructor toString",
    "json": '{"a": "</script>", "__proto__": {"x": 1}}',
}  # fmt: skip


def hostile_run(path):
    """Write a run with each text everywhere: an answer, one with thinking and a call, an exchange, a fault."""
    texts = list(TEXTS.values())
    serving = {f"lab/{text}": {"server": {"server": text}} for text in texts}
    return store(
        path,
        [row for text in texts for row in _rows(text)],
        prompts=[_prompt(text) for text in texts],
        host="".join(texts)[:500],
        serving=serving,
        repeat=4,
    )


def _prompt(text):
    everywhere = dict.fromkeys(("suite", "name", "prompt", "system", "category"), text)
    return definition(
        text,
        **everywhere,
        tags=[text],
        validator={"type": "contains", "value": text},
        tools=[text, {"name": text}],
        tools_sha256="0",
        world={"files": {text: text}},
    )


def _rows(text):
    names = ("prompt_id", "prompt_name", "suite", "category", "run_id", "violation", "finish_reason")
    base = record(
        Target(provider="lab", model=text),
        **dict.fromkeys((*names, "effective_model", "host"), text),
        objective_pass=False,
        tools_offered=2,
        parsed_output={text: text},
        tool_calls=(text,),
        extra={"later_field": text},
    )
    call = dict.fromkeys(("id", "name", "arguments", "result"), text)
    call["problem"] = "unknown_tool"
    turn = {"text": text, "reasoning": text, "calls": [call], "finish_reason": text}
    turn |= dict.fromkeys(("e2e_ms", "ttft_ms", "input_tokens", "output_tokens"), 1)
    thought = f"<think>\n{text}\n</think>\n\n{text}"
    fault = {"availability_status": "error", "success": False}
    fault |= {"objective_pass": None, "violation": None}
    return [
        replace(base, raw_output=text),
        replace(base, repeat=2, raw_output=thought, tool_call_details=(call,), tool_outcome="unknown_tool"),
        replace(
            base, repeat=3, turns=(turn, {**turn, "user": text}), ended_by="answer", tool_outcome="wrong_tool"
        ),
        replace(base, repeat=4, failure_type="timeout", fault_message=text, raw_output=text, **fault),
    ]
