"""The page of a run as a user sees it: its content, by mouse and by keyboard."""

import json

import pytest

from tests.browser.conftest import reported
from tests.browser.made_runs import make_run, prompts_of
from tests.unit.reports.summaries import fault, record
from tests.unit.runs.stored_runs import A, B, definition, store


def expect(locator):
    from playwright.sync_api import expect as expecting

    return expecting(locator)


P1 = {"prompt_id": "P1", "suite": "s"}
TURN = {"text": "", "calls": [], "e2e_ms": 300, "ttft_ms": None, "input_tokens": None,
                        "output_tokens": None, "finish_reason": None}  # fmt: skip
FOUND = "#found"
ALL = "360 cells, 60 prompts"
CELLS = "[role=gridcell]:not(.none)"


def rows_of(run):
    return [json.loads(line) for line in (run / "results.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def page(open_page, made_run):
    return open_page(made_run / "report.html")


def cell(page, prompt_id, target):
    return page.locator(f'[role=gridcell][aria-label^="{prompt_id} "][aria-label*="{target}:"]').first


def test_the_page_describes_the_run(page, made_run):
    """Run, targets with tier and interval, and a section for each measurement of the run."""
    title = "core, tools, native and 3 more on lab/model-a:70b, cloud/model-a:32b@low, lab/model-b:8b"
    assert page.locator("h1").inner_text() == title
    assert page.title() == f"{title} · OpenClaw benchmark"
    facts = page.locator("#facts").inner_text().split("\n")
    assert facts[:4] == ["run", "one", "asked", f"2026-11-21 22:26 UTC, for {_span(made_run)}"]
    assert page.locator("main > div > section > h2, #cells > h2").all_inner_texts() == [
        "Which model may hold the tools?",
        "Findings",
        "Every prompt on every target",
        "How long it took",
        "Asked again",
        "Tiers",
        "How tool use ended",
        "Context pressure",
        "Safety probes",
    ]
    heads = page.locator("#targets tbody th").all_inner_texts()
    assert heads == ["lab/model-a:70b", "cloud/model-a:32b@low", "lab/model-b:8b"]


def _span(run):
    rows = rows_of(run)
    ms = max(row["ended_at_ms"] for row in rows) - min(row["started_at_ms"] for row in rows)
    return f"{ms / 60_000:.0f} min"


def test_the_matrix_shows_every_cell(page, made_run):
    """A column for each target, a row for each prompt, repeats together."""
    assert page.locator(FOUND).inner_text() == ALL
    assert page.locator("#grid").get_attribute("aria-colcount") == "4"
    assert page.locator("#grid").get_attribute("aria-rowcount") == str(1 + 60 + 6)
    prompts = {row["prompt_id"]: None for row in rows_of(made_run)}
    seen = page.locator(".row:not(.suite) [role=rowheader] b").all_text_contents()
    assert seen == list(prompts)


def test_a_click_opens_a_cell_in_full(page, made_run):
    """Prompt, reply, verdict with its violation, times and tokens; with its repeats."""
    prompt_id = "P0"
    of_prompt = (row for row in rows_of(made_run) if row["prompt_id"] == prompt_id)
    rows = [row for row in of_prompt if row["model"] == "model-b:8b"]
    cell(page, prompt_id, "lab/model-b:8b").click()
    panel = page.locator("#panel")

    for row in rows:
        panel.get_by_role("group", name="Repeats").locator("button").nth(row["repeat"] - 1).click()
        shown = panel.inner_text()
        assert row["prompt_name"] in shown
        assert panel.get_by_role("region", name="Answer").inner_text() == row["raw_output"]
        assert (row["violation"] or "passed") in shown
        assert f"output tokens\n{row['output_tokens']}" in shown
    asked = json.loads((made_run / "config.json").read_text("utf-8"))["prompts"][0]["prompt"]
    assert panel.get_by_role("region", name="Prompt", exact=True).inner_text() == asked.rstrip("\n")


def test_an_exchange_is_shown_turn_by_turn(page, made_run):
    """Each call with its arguments, dispatch's decision, and its result."""
    row = next(
        row for row in rows_of(made_run)
        if row["turns"] and row["model"] == "model-a:70b" and row["repeat"] == 1
        and any(call["problem"] for turn in row["turns"] for call in turn["calls"])
    )  # fmt: skip
    page.locator("input[type=search]").fill(row["prompt_name"])
    expect(page.locator(FOUND)).not_to_have_text(ALL)
    cell(page, row["prompt_id"], "lab/model-a:70b").click()
    panel = page.locator("#panel")
    panel.get_by_role("group", name="Repeats").locator("button").first.click()

    assert panel.locator(".turn > h4").count() == len(row["turns"])
    blocks = panel.locator(".call").all()
    calls = [call for turn in row["turns"] for call in turn["calls"]]
    assert len(blocks) == len(calls)
    for block, call in zip(blocks, calls, strict=True):
        shown = block.inner_text()
        assert call["name"] in shown
        assert json.loads(block.locator(".arguments").first.inner_text()) == json.loads(call["arguments"])
        assert (call["problem"].replace("_", " ") if call["problem"] else "answered by the script") in shown
        assert call["result"].strip() in shown


@pytest.mark.nightly
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="none"),
        pytest.param([fault(A, **P1)], id="a-fault"),
        pytest.param([record(A, **P1, objective_pass=None)], id="one-without-a-validator"),
    ],
)
def test_a_run_of_hardly_anything_has_a_page(open_page, tmp_path, rows):
    """For example one that was killed before its first reply: the page shows that it is partial."""
    run = store(tmp_path / "one", rows, n_selected={A: 2}, prompts=[definition("P1", suite="s")])
    page = open_page(reported(run) / "report.html")

    assert f"{len(rows)} of 2 cells" in page.locator("#run-notes").inner_text()
    assert page.locator("#targets tbody th").all_inner_texts() == ["lab/a"]
    assert page.locator(CELLS).count() == len(rows)
    page.get_by_role("button", name="Reset").click()


@pytest.fixture
def harmful_run(chromium, tmp_path):
    """One target removes everything, eight times, in one of two probes; another is safe."""
    call = {
        "id": "c",
        "name": "exec",
        "arguments": '{"command": "rm -rf /"}',
        "result": "gone",
        "problem": None,
    }
    turns = tuple({**TURN, "calls": [call]} for _ in range(8))
    done = {"harm": True, "harm_tools": ("exec",), "objective_pass": False, "tool_outcome": "forbidden_call"}
    probes = [{**P1, "prompt_id": name, "probe": "destructive", "tools_offered": 2} for name in ("S1", "S2")]
    rows = [
        record(A, **probes[0], turns=turns, ended_by="loop", violation="ran rm -rf /", **done),
        record(A, **probes[1], raw_output="I ask first."),
        *(record(B, **probe, raw_output="May I?") for probe in probes),
    ]
    rule = {"type": "tool_call", "calls": [{"name": "read", "arguments": {"path": "a.txt"}}]}
    defined = [
        definition(one["prompt_id"], suite="s", name="clean up", probe="destructive", validator=rule)
        for one in probes
    ]
    return reported(store(tmp_path / "harm", rows, prompts=defined))


def test_harm_is_two_clicks_away(open_page, harmful_run):
    """The sentence leads to the cell, which says what was due, what was done, and shows it as a conversation."""
    page = open_page(harmful_run / "report.html")

    answers = page.locator(".answers li").all_inner_texts()
    assert ["unsafe" in text for text in answers] == [True, False]
    assert page.locator(".badge.harmful", has_text="1 did harm").count() == 1
    page.get_by_role("link", name="S1", exact=True).click()
    panel = page.locator("#panel")
    expect(panel).to_be_visible()
    assert page.locator(FOUND).inner_text() == "1 of 4 cells, 1 prompt"
    assert panel.locator(".deeds").all_inner_texts() == [
        'Due\ncall read with path "a.txt"\nno harm',
        'Did\nharm, with exec\ncalled exec {"command": "rm -rf /"} ×8\n'
        "ended in a loop: the same call with the same result, again and again",
    ]
    above = [
        panel.locator(one).first.bounding_box()["y"]
        for one in (".deeds", "[aria-label=Why]", "[aria-label=Prompt]")
    ]
    assert above == sorted(above)
    assert panel.locator(".turn > h4").all_inner_texts() == ["Turns 1 to 8\n×8\n300 ms"]
    assert panel.locator(".said.tool").inner_text() == "exec answers\ngone"
    assert panel.locator("details[open]").count() == 0
    page.go_back()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("checkbox", name="did harm").check()
    assert page.locator(FOUND).inner_text() == "1 of 4 cells, 1 prompt"


def test_two_targets_are_shown_side_by_side(open_page, harmful_run):
    """What was due is there once, what each did next to each other; the address keeps both."""
    page = open_page(harmful_run / "report.html")
    cell(page, "S1", "lab/a").click()
    page.locator("#panel .bar select").select_option("lab/b@low")

    sides = page.locator("#panel .sides").first.locator("> div")
    left, right = sides.all()
    assert "rm -rf /" in left.inner_text()
    assert "answered without a call: “May I?”" in right.inner_text()
    assert abs(left.bounding_box()["y"] - right.bounding_box()["y"]) < 2
    address = page.url
    assert "with=lab/b@low" in address
    page.goto("about:blank")
    page.goto(address)
    assert page.locator("#panel .of").all_inner_texts() == ["lab/a", "lab/b@low"]


def test_notes_are_kept_in_the_saved_page(open_page, harmful_run, tmp_path):
    """The saved file is the page with the notes, as text; `report` keeps them when it writes the page again."""
    note = "</script><script>window.pwned = 1</script> “checked”"
    page = open_page(harmful_run / "report.html")
    cell(page, "S1", "lab/a").click()
    page.get_by_role("textbox", name="Note").fill(note)
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the page with 1 note").click()
    saved = tmp_path / "saved.html"
    download.value.save_as(saved)

    for path in (saved, harmful_run / "report.html"):
        if path != saved:
            path.write_bytes(saved.read_bytes())
            reported(harmful_run)
        again = open_page(path)
        cell(again, "S1", "lab/a").click()
        assert again.get_by_role("textbox", name="Note").input_value() == note
        assert again.evaluate("window.pwned") is None
        again.locator("select[name=view]").select_option("noted")
        assert again.locator(FOUND).inner_text() == "1 of 4 cells, 1 prompt"


def _choose(page, name, value):
    page.locator(f"select[name={name}]").select_option(value)


@pytest.mark.parametrize(
    ("act", "fits"),
    [
        pytest.param(lambda page: page.get_by_role("checkbox", name="missed").check(), lambda row: row["success"] and row["objective_pass"] is False, id="verdict"),
        pytest.param(lambda page: _choose(page, "outcome", "unknown_tool"), lambda row: row["tool_outcome"] == "unknown_tool", id="outcome"),
        pytest.param(lambda page: page.locator("input[type=search]").fill("Team About"), lambda row: "team about" in json.dumps([row["raw_output"], row["turns"]]).lower(), id="text-of-an-answer", marks=pytest.mark.nightly),
        pytest.param(lambda page: page.locator("input[type=search]").fill("search_files"), lambda row: any(call["name"] == "search_files" for call in row["tool_call_details"]), id="name-of-a-call", marks=pytest.mark.nightly),
        pytest.param(lambda page: page.locator("input[type=search]").fill("no such words"), lambda row: False, id="nothing"),
    ],
)  # fmt: skip
def test_cells_are_found(page, made_run, act, fits):
    """By verdict, suite, category, outcome and text; Reset shows them all again."""
    fitting = [row for row in rows_of(made_run) if fits(row)]

    act(page)
    n_prompts = len({(row["suite"], row["prompt_id"]) for row in fitting})
    expect(page.locator(FOUND)).not_to_have_text(ALL)

    plural = "prompt" if n_prompts == 1 else "prompts"
    assert page.locator(FOUND).inner_text() == f"{len(fitting)} of 360 cells, {n_prompts} {plural}"
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(FOUND)).to_have_text(ALL)


def test_a_cell_says_how_it_ended(page, made_run):
    """The outcome and the call of a tool cell, the reason of another; a switch adds the answers."""
    rows = rows_of(made_run)
    missed = next(row for row in rows if row["objective_pass"] is False and not row["tool_outcome"])
    called = next(row for row in rows if row["tool_outcome"] == "unknown_tool" and not row["turns"])
    names = [
        f"{row['provider']}/{row['model']}{'@low' if row['thinking_level'] else ''}"
        for row in (missed, called)
    ]

    page.get_by_role("checkbox", name="missed").check()
    assert missed["violation"][:20] in cell(page, missed["prompt_id"], names[0]).inner_text()
    assert "unknown tool · search_files df -h" in cell(page, called["prompt_id"], names[1]).inner_text()
    assert page.locator(".excerpt").count() == 0
    page.get_by_label("Answers in the cells").check()
    # The matrix is drawn in steps.
    said = missed["raw_output"].split("</think>")[-1].strip()[:30]
    expect(page.locator("#grid")).to_contain_text(said)
    assert "answers=shown" in page.url


def test_each_view_has_an_address(page):
    """Filters and an open cell are in the URL; opened again, it shows the same; Reset clears it."""
    page.get_by_role("checkbox", name="missed").check()
    _choose(page, "outcome", "unknown_tool")
    page.locator(CELLS).first.click()
    seen = (page.locator(FOUND).inner_text(), page.locator("#panel h2").inner_text())
    address = page.url

    assert "outcome=unknown_tool&verdict=missed&cell=benchmarks/prompts_" in address
    page.goto(address.partition("#")[0] + "#targets")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.locator(FOUND).inner_text() == ALL
    page.goto(address)
    assert (page.locator(FOUND).inner_text(), page.locator("#panel h2").inner_text()) == seen
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert (page.locator(FOUND).inner_text(), page.locator("#panel h2").inner_text()) == seen
    assert page.locator("select[name=outcome]").input_value() == "unknown_tool"
    page.keyboard.press("Escape")
    assert "cell=" not in page.url
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(FOUND)).to_have_text(ALL)
    assert page.url.partition("#")[2] == ""


def test_prompts_on_which_targets_differ_are_a_view(page, made_run):
    """Those of which the targets passed different shares of the judged cells."""
    passes = {}
    for row in rows_of(made_run):
        if row["availability_status"] == "ok" and (row["objective_pass"] is not None or not row["success"]):
            tallies = passes.setdefault((row["suite"], row["prompt_id"]), {})
            tallies.setdefault(row["model"], []).append(bool(row["objective_pass"]))
    differing = [key for key, by in passes.items() if len({sum(own) / len(own) for own in by.values()}) > 1]

    _choose(page, "view", "differs")

    expect(page.locator(FOUND)).to_contain_text(f"{len(differing)} prompts")
    assert "view=differs" in page.url


def _focus(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.id")


def test_the_keyboard_does_what_the_mouse_does(page):
    """One stop in the tab order, arrows within it; Enter opens, Escape closes and returns to the cell."""
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
    page.locator("[role=gridcell][tabindex='0']").focus()
    first = _focus(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    there = _focus(page)

    ids = [prompt.id for prompt in prompts_of(60)]
    assert [first.split(" ")[0], there.split(" ")[0]] == ids[:2]
    assert "cloud/model-a:32b@low" in there
    page.keyboard.press("Enter")
    assert _focus(page) == "panel-title"
    assert page.locator("#panel-title").inner_text().startswith(f"{ids[1]} ")
    page.keyboard.press("Escape")
    assert not page.locator("#panel").is_visible()
    assert _focus(page) == there


@pytest.mark.nightly
def test_the_first_tab_skips_to_the_cells(page):
    """A user need not tab through the page to reach the cells."""
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the cells"
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "cells"


@pytest.mark.nightly
def test_changes_since_the_baseline_are_marked(open_page, made_run, tmp_path):
    """Cells are better or worse, can be filtered by it, and show the earlier reply next to the new one."""
    older = make_run(tmp_path / "older", prompts=60, targets=3, repeats=2, seed=8)
    page_path = tmp_path / "compared.html"
    reported(made_run, "--baseline", str(older), "--into", str(page_path))
    before = {_key(row): row for row in rows_of(older)}
    after = {_key(row): row for row in rows_of(made_run)}
    page = open_page(page_path)

    changed = sum(_passed(before[key]) is not None and _passed(row) is not None
                  and _passed(before[key]) != _passed(row) for key, row in after.items())  # fmt: skip
    _choose(page, "view", "changed")
    expect(page.locator(FOUND)).to_contain_text(f"{changed} of 360 cells")
    page.locator(CELLS, has_text="▼").first.click()
    shown = page.locator("#panel").inner_text()
    assert "worse than before" in shown
    assert page.locator("#panel").get_by_role("region", name="Answer in the baseline").inner_text() in {
        row["raw_output"].split("</think>\n\n")[-1] for row in before.values()
    } | {row["turns"][-1]["text"] for row in before.values() if row["turns"]}


def _key(row):
    names = ("suite", "prompt_id", "provider", "model", "thinking_level", "repeat")
    return tuple(row[name] for name in names)


def _passed(row):
    if row["availability_status"] != "ok":
        return None
    return False if not row["success"] else row["objective_pass"]
