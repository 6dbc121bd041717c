"""Recorded sessions of OpenClaw in whole sessions: collected, asked, judged by agreement, summarized."""

import json
import shutil
import time

import pytest

from pytest_openclaw.openclaw.catalog import DIRECT, load_catalogue
from pytest_openclaw.parts.sessions.prompts import read_session
from pytest_openclaw.parts.sessions.rules import RecordedCall, RecordedWorld, Replaying, changes
from pytest_openclaw.values.tool_calls import ToolCall
from tests.recorded import (
    NOTES,
    SYSTEM,
    bundle_lines,
    calls,
    compaction,
    result,
    says,
    user,
    write_bundle,
    write_transcript,
)

pytestmark = pytest.mark.newest

# Answers each message of the user as replies.json says, and records the requests in requests.jsonl.
PROVIDER = """
class Heir(Provider):
    name = "heir"
    takes_tools = takes_messages = True
    is_local = True

    async def ask(self, request):
        note(request.model)
        turns = [
            {"user": one.user, "text": one.text, "calls": [call.name for call in one.calls], "results": one.results}
            for one in request.conversation
        ]
        entry = {"system": request.system, "turns": turns, "tools": {one.name: one.parameters for one in request.tools}}
        with open(FOLDER / "requests.jsonl", "a") as file:
            file.write(json.dumps(entry) + "\\n")
        replies = json.loads((FOLDER / "replies.json").read_text())
        said = replies.get(turns[-1]["user"] or turns[-1]["results"][-1], "Well.")
        if isinstance(said, str):
            return Reply(text=said)
        made = (ToolCall(name=name, arguments=json.dumps(given)) for name, given in said)
        return Reply(tool_calls=tuple(made))


class Cloud(Heir):
    name = "cloud"
    is_local = False


PROVIDERS += [Heir, Cloud]
"""
STEP = "openclaw-trajectory-s1/manifest.json"


class History:
    def __init__(self, project):
        project.extend_conftest(PROVIDER)
        self.project = project
        self.answers()

    def record(self, *entries, name="s1", **more):
        return write_bundle(self.project.folder, *entries, name=name, **more)

    def answers(self, **replies):
        self.project.write(
            "replies.json", json.dumps({key.replace("_", " "): one for key, one in replies.items()})
        )

    def run(self, *words, models="heir/m", target=""):
        (self.project.folder / "requests.jsonl").unlink(missing_ok=True)
        names = [target] if target else sorted(one.name for one in self.project.folder.glob("openclaw-traj*"))
        return self.project.run(*names[1:], *words, models=models, target=names[0])

    @property
    def requests(self):
        return [
            json.loads(line) for line in (self.project.folder / "requests.jsonl").read_text().splitlines()
        ]


@pytest.fixture
def history(plain_project):
    return History(plain_project)


def test_a_name_that_the_recorded_model_called_shows_no_key(history, monkeypatch):
    """It would be part of the rows, the configuration, the pages and the reasons for what is left out."""
    key = "box_Zq7Wx3Ec9Rv5Tb1Yn8Um4Ik2Ol6P"
    monkeypatch.setenv("BOX_KEY", key)
    failed = result("no", isError=True)
    history.record(
        user("One"), calls((key, {})), result("1"), user("Two"), calls((f"t_{key}", {"a": 1})), failed
    )

    session = history.run("-rs")

    assert session.row("1.1")["prompt_name"] == "[secret]"
    assert "its call of t_[secret] failed" in session.text
    assert key not in session.text
    assert not [path for path in session.run_dir.iterdir() if key in path.read_text("utf-8")]


@pytest.mark.under_workers
def test_each_step_is_a_cell(project):
    """Its request has what was there before it, as recorded; its row has what differs."""
    history = History(project)
    history.record(*NOTES)
    history.answers(
        **{"What is in my notes?": [("read", {"path": "./notes.txt", "limit": 100})], "milk, bread": "Milk."}
    )

    session = history.run()

    session.outcomes(passed=2)
    first, second = sorted(history.requests, key=lambda one: len(one["turns"]))
    assert first["system"] == second["system"] == SYSTEM
    assert [turn["user"] for turn in first["turns"]] == ["What is in my notes?"]
    assert second["turns"][1:] == [{"user": None, "text": "", "calls": ["read"], "results": ["milk, bread"]}]
    assert [*first["tools"]] == ["read", "exec", "write"]
    row = session.row("1.1")
    assert row["parsed_output"] == {
        "agreement": "same",
        "recorded": [{"tool": "read", "arguments": {"path": "notes.txt"}}],
        "answered": [{"tool": "read", "arguments": {"path": "./notes.txt", "limit": 100}}],
    }
    assert (row["suite"], row["category"], row["tool_outcome"]) == (STEP, "read", None)
    assert session.summary["groups"][0]["tool_use"]["tier"] is None
    assert "milk" not in json.dumps(session.load("config.json")).lower()


def test_the_words_of_agreement(history):
    """Each way in which an answer may differ has its word; a call that OpenClaw refuses has its outcome."""
    recorded = calls(("exec", {"command": "grep -n  'port' ./a.txt"}))
    words = {
        "same": [("exec", {"command": "grep -n port a.txt ", "workdir": "$WORKSPACE_DIR"})],
        "same_tool": [("exec", {"command": "cat a.txt"})],
        "other_tool": [("read", {"path": "a.txt"})],
        "answered": "It is 8080.",
        "leaked_as_text": '<tool_call>{"name": "exec", "arguments": {"command": "cat a.txt"}}</tool_call>',
        "unknown_tool": [("find_port", {})],
        "bad_arguments": [("exec", {"command": 5, "yieldMs": "x"})],
    }
    for n, word in enumerate(words):
        history.record(user(f"Q{word}"), recorded, result("1:port 8080"), says("8080"), name=f"s{n}")
    history.record(user("Hi"), says("Hello"), name="called")
    replies = {f"Q{word}": said for word, said in words.items()} | {"Hi": [("exec", {"command": "ls"})]}
    history.project.write("replies.json", json.dumps(replies))

    session = history.run()

    found = {
        row["suite"][20:-14]: row["parsed_output"]["agreement"]
        for row in session.rows
        if row["prompt_id"] == "1.1"
    }
    assert found == {f"s{n}": word for n, word in enumerate(words)} | {"called": "called"}
    (differing,) = (row for row in session.rows if row["parsed_output"]["agreement"] == "same_tool")
    assert differing["parsed_output"]["differs"] == ["exec.command"]
    assert differing["violation"].startswith("same_tool (exec.command): recorded exec")


def test_steps_that_say_nothing_are_left_out(history):
    """A failed call, an objection, an image and a cut message: each is a skipped test with its reason."""
    history.record(
        user("Show it"), calls(("exec", {"command": "cat x"})), result("no", details={"exitCode": 1}), says("Gone."),
        user("Delete it"), calls(("exec", {"command": "rm a"})), result("ok"), says("Deleted."),
        user("No, I meant b!"), calls(("exec", {"command": "rm b"})), result("bad", isError=True), says("Hm."),
    )  # fmt: skip
    image = [{"type": "image", "mimeType": "image/png", "data": "<redacted>"}]
    history.record(user([*image, {"type": "text", "text": "What is it?"}]), says("A cat."), name="s2")
    history.record(*NOTES, user("And?"), "[Truncated]", says("Yes."), name="s3")

    session = history.run("-rs")

    session.outcomes(passed=3, failed=1, skipped=6)
    reasons = "its call of exec failed", "the user objected to", "an image before it", "a message is cut"
    assert all(reason in session.text for reason in reasons)


def test_figures(history):
    """Summary, terminal and report have the rate, with an interval over sessions, by tool and by position."""
    for n in range(4):
        history.record(*NOTES, name=f"s{n}")
    history.answers(**{"What is in my notes?": [("exec", {"command": "ls"})]})

    session = history.run()

    (part,) = session.summary["added"]
    figures = part["value"]["heir/m"]
    assert (figures["n"], figures["n_agree"], figures["n_sessions"]) == (4, 0, 4)
    assert (figures["tools"]["read"]["n_agree"], figures["tools"]["answer"]["n_agree"]) == (0, 4)
    assert {name: its["n"] for name, its in figures["positions"].items()} == {"first": 4}
    assert figures["differences"] == {"other_tool": 4}
    assert (
        "agrees in 0 of 4 steps (0–49 %), most differences in read; calls no tool in 4 of 4" in session.words
    )
    assert "Agreement with recorded sessions" in session.page


def test_after_a_compaction_only_its_summary_and_the_kept_messages_are_sent(history):
    """As OpenClaw does it."""
    history.record(
        *NOTES, {"kind": "custom"}, user("More?"), says("No."), compaction("They have milk.", kept=4), user("And?"),
        says("Ok."),
    )  # fmt: skip

    history.run("--openclaw-prompts=3.1")

    (request,) = history.requests
    summary, kept, _, last = request["turns"]
    assert "<summary>\nThey have milk.\n</summary>" in summary["user"]
    assert (kept["user"], last["user"]) == ("More?", "And?")


def test_a_transcript_of_an_older_release(history):
    """Its active branch is collected; the tools are those that OpenClaw sends by default."""
    write_transcript(history.project.folder, [*NOTES, user("Lost"), says("Lost"), user("Hi"), says("Hello")],
                     [None, 0, 1, 2, 3, 4, 3, 6])  # fmt: skip

    session = history.run(target="agents/main/sessions")

    session.outcomes(passed=2, failed=1)
    assert {"read", "exec", "tool_call"} <= {*history.requests[0]["tools"]}
    assert session.row("2.1")["parsed_output"]["cut"] == ["system prompt"]
    assert not any(turn["user"] == "Lost" for request in history.requests for turn in request["turns"])


def test_a_tool_whose_schema_is_cut_accepts_anything(history):
    """A tool of the catalogue has its whole schema; the row names a tool that has none."""
    tools = [{"name": "my_tool", "description": "Mine.", "parameters": {
        "type": "object", "required": ["x"], "properties": {"x": {"truncated": True, "reason": "trajectory-depth-limit"}},
    }}]  # fmt: skip
    history.record(user("Go"), calls(("my_tool", {"x": 1})), result("ok"), calls(("browser", {"action": "tabs"})),
                   result("none"), says("Done"), tools=tools)  # fmt: skip
    history.answers(Go=[("my_tool", {"x": 1})])

    session = history.run("--openclaw-prompts=1.1")

    (row,) = session.rows
    assert row["parsed_output"]["agreement"] == "same"
    assert row["parsed_output"]["cut"] == ["schema of my_tool"]
    assert history.requests[0]["tools"]["my_tool"] == {"type": "object", "properties": {"x": {}}}
    assert "targetUrl" in history.requests[0]["tools"]["browser"]["properties"]


def test_sessions_leave_the_machine_only_if_allowed(project):
    """Without the option nothing is sent, and the error says what would be sent where."""
    history = History(project)
    history.record(*NOTES)

    history.run(models="cloud/m").is_refused("cloud: 2 steps of 1 recorded session, with system prompt")
    history.run(models="heir/gpt-oss:120b-cloud").is_refused("may leave this machine")
    allowed = history.run("--openclaw-sessions-may-leave", models="cloud/m")

    assert len(allowed.rows) == 2


def test_secrets_are_masked(history, monkeypatch):
    """A secret of the environment that was recorded is in no file of the run."""
    monkeypatch.setenv("ACME_API_KEY", "v9Kq-2Lw8xTz7Rb4")
    history.record(
        user("Use v9Kq-2Lw8xTz7Rb4"), calls(("exec", {"command": "curl -H v9Kq-2Lw8xTz7Rb4"})), result("ok")
    )

    session = history.run()

    files = [path.read_text("utf-8") for path in session.run_dir.rglob("*") if path.is_file()]
    assert not any("v9Kq-2Lw8xTz7Rb4" in text for text in files)
    assert session.rows[0]["parsed_output"]["recorded"][0]["arguments"]["command"] == "curl -H [secret]"


BAD_LABEL = '{"session": "manifest.json", "step": "1.1:x", "label": "accepted", "calls": [7]}'
DEEP_LABEL = BAD_LABEL.replace("7", '{"a":' * 300 + "7" + "}" * 300)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        pytest.param("manifest.json", "{}", "manifest.json: line 1 is not one of OpenClaw's", id="no-manifest"),
        pytest.param("manifest.json", "[" * 100_000, "manifest.json: line 1 is not", id="deep-manifest"),
        pytest.param("manifest.json", '{"traceSchema": "openclaw-trajectory", "schemaVersion": 2}', "version 2", id="new"),
        pytest.param("events.jsonl", None, "events.jsonl: cannot be read (No such file", id="no-events"),
        pytest.param("events.jsonl", "", "events.jsonl: is empty", id="empty"),
        pytest.param("events.jsonl", "\n" + bundle_lines(NOTES)[0], "line 1 is not", id="empty-line"),
        pytest.param("events.jsonl", bundle_lines(NOTES)[0].replace('"seq": 1', '"seq": NaN'), "line 1", id="nan"),
        pytest.param("events.jsonl", '{"type": "x"}\n', "line 1 is not one of OpenClaw's", id="foreign"),
        pytest.param("events.jsonl", bundle_lines(NOTES)[0] + "\n" + '{"a": ' * 90_000, "line 2 is not", id="deep"),
        pytest.param("events.jsonl", bundle_lines(NOTES)[0][:60], "line 1 is not", id="torn"),
        pytest.param("events.jsonl", b"\xff\xfe\x00", "line 1 is not", id="binary"),
        pytest.param("events.jsonl", bundle_lines(NOTES)[0], "has no message of a model", id="no-model"),
        pytest.param("accepted.jsonl", "{}", "accepted.jsonl: line 1 is not a label", id="labels"),
        pytest.param("accepted.jsonl", DEEP_LABEL, "line 1 is not a label: it is nested more than", id="deep-label"),
        pytest.param("accepted.jsonl", BAD_LABEL, "line 1 is not a label: calls[0] is 7, not a table", id="bad-label"),
    ],
)  # fmt: skip
def test_a_broken_session_is_a_collection_error(history, name, content, why):
    """It names the file and the reason, without a traceback; nothing is asked."""
    file = history.record(*NOTES) / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    session = history.run()

    session.outcomes(errors=1)
    assert "openclaw-trajectory-s1/" in session.text
    assert why in session.words
    assert "Traceback" not in session.text
    assert not session.has_run


HOSTILE = [
    user({"a": 1}), user(None), user([1, None, {"type": "text", "text": 5}, {"type": 7}]), user("\ud800 x"), user(""),
    {"role": "assistant", "content": [{"type": "toolCall", "name": None, "arguments": "x"}]},
    {"role": "assistant", "content": [{"type": "toolCall", "id": 5, "name": "a b[::]/", "arguments": {"x": {"y": [1]}}}]},
    {"role": "assistant", "content": None, "stopReason": "error"}, {"role": "system", "content": "Obey"},
    result("late", n=9), result("x", details="[Truncated]"), compaction("s", kept=99), says("ok", provider="openclaw"),
]  # fmt: skip


def test_odd_messages_do_no_harm(history):
    """Whatever form a message has, the session is collected, or is a collection error."""
    history.record(
        *HOSTILE[1:], user("Hi"), says("Hello"), name="s1", system={"truncated": True}, tools="[Truncated]"
    )
    history.record(*HOSTILE[:1], name="s2")

    session = history.run()

    assert session.result.parseoutcomes()["errors"] == 1
    assert "openclaw-trajectory-s2/manifest.json: has no message of a model" in session.words
    assert "INTERNALERROR" not in session.text


BRACES = "[Malformed diagnostic JSON redacted]"
ASKED = {"1.1": "read", "1.2": "answer"}


@pytest.mark.parametrize(
    ("entries", "asked", "why"),
    [
        pytest.param([user("Go"), calls(("read", {"path": "a"})), result(BRACES), says("Ok"), user("Hi"), says("Hi")],
                     {"1.1": "read"}, "a message is cut in the record", id="program-as-result"),
        pytest.param([*NOTES, user("Write it"), calls(("write", {"path": "a", "content": BRACES})), result("ok")],
                     ASKED, "a message is cut in the record", id="program-as-argument"),
        pytest.param([*NOTES, user("Get it"), calls(("exec", {"command": "curl -u k:<redacted>"})), result("ok"), says("Ok")],
                     {**ASKED, "2.2": "answer"}, "a part of its call is masked in the record", id="masked-call"),
        pytest.param([user(BRACES), *NOTES[1:], {"kind": "reset"}, user("Hi"), says("Hello")],
                     {"2.1": "answer"}, "a message is cut in the record", id="reset"),
        pytest.param([user("Go"), says("x" * (1 << 20)), *NOTES, compaction("s", kept=2), user("Hi"), says("Hello")],
                     {"1.1": "answer", "3.1": "answer"}, "more than 1024 KiB", id="long"),
        pytest.param([*NOTES[:2], compaction("s", kept=99), *NOTES[2:], user("Hi"), says("Hello")],
                     {"1.1": "read", "1.2": "answer", "2.1": "answer"}, "", id="compaction-before-a-result"),
        pytest.param([*NOTES, compaction(BRACES, kept=99), user("And?"), says("Yes")],
                     ASKED, "a message is cut in the record", id="cut-summary"),
        pytest.param([user("Go"), calls(("read", {"path": "a"}), ("read", {"path": "b"})), result("1", n=1), result("0"),
                      result("again"), says("Ok")],
                     ASKED, "", id="results-in-another-order"),
        pytest.param([user("Go"), calls(("no_such_tool", {"x": 1})), result("not found", isError=True), says("Hm")],
                     {"1.2": "answer"}, "its call of no_such_tool failed", id="invalid-call"),
        pytest.param([user("Go"), {"role": "assistant", "content": [{"type": "thinking", "thinking": BRACES},
                      {"type": "text", "text": "Ok"}]}, user("Hi"), says("Hello")],
                     {"1.1": "answer", "2.1": "answer"}, "", id="program-in-thoughts"),
        pytest.param([user("Go"), says("", stopReason="error"), calls(("read", {"path": "a"})), result("1"), says("Ok")],
                     ASKED, "", id="failed-request"),
        pytest.param([*NOTES, {"role": "toolResult", "toolCallId": ["c0"], "content": "x"}, user("Hi"), says("Hello")],
                     {**ASKED, "2.1": "answer"}, "", id="result-of-no-call"),
    ],
)  # fmt: skip
def test_nothing_is_judged_from_what_the_record_lacks(tmp_path, entries, asked, why):
    """A step is asked if the conversation before it and its calls are whole; others are left out."""
    suite = read_session(write_bundle(tmp_path, *entries) / "manifest.json", "s")

    assert {one.id: one.category for one in suite.prompts} == asked
    assert any(why in one for one in suite.left_out.values()) if why else not suite.left_out


def test_ids_of_any_form(tmp_path):
    """Entries without ids, in a circle, or with lists as ids are read; so is a part without a parent."""
    events = write_bundle(tmp_path, *NOTES) / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    for change in (
        {"entryId": None}, {"entryId": ["x"], "parentEntryId": {}}, {"parentEntryId": "e3"}, {"parentEntryId": 7},
    ):  # fmt: skip
        changed = [
            {**line, **change} if "entryId" in line and line["entryId"] != "e3" else line for line in lines
        ]
        events.write_text("\n".join(map(json.dumps, changed)), "utf-8")
        read_session(events.with_name("manifest.json"), "s")


WIDE = {f"x{n}": {"anyOf": [{"$ref": f"#/$defs/x{n + 1}"}] * 3} for n in range(30)} | {
    "x30": {"required": ["q"]}
}
RUNAWAY = {"type": "object", "$ref": "#/$defs/x0", "$defs": WIDE}


@pytest.mark.parametrize("is_replay", [False, True])
def test_no_record_takes_long(history, is_replay):
    """Whatever its tools, messages and results are: they come from other programs and from pages."""
    names = [f"t{n}" for n in range(10)]
    tools = [{"name": name, "parameters": RUNAWAY} for name in names]
    system = "## Tooling\n" + "".join(f"- {name}: x\n" for name in names)
    blank = (user("b"), calls((" ", {})), result("x"))
    history.record(
        user("Hi"), calls(("t1", {"a": 1})), result("1"), says("2"), *blank, system=system, tools=tools
    )
    several = calls(*(("read", {"path": str(n)}) for n in range(20_000)))
    results = [result("x", n) for n in range(20_000)]
    history.record(user("Go"), several, *results, says("1"), user("a"), calls(("t" * 10**6, {})), name="s2")
    history.record(user("Look"), calls(("read", {"path": "a"})), result("[" * 10**6), says("1"), name="s3")
    history.answers(Look=[("read", {"path": "b"})], Hi=[("t1", {"a": 1})])

    began = time.monotonic()
    session = history.run(*["--openclaw-sessions=replay"] * is_replay, "-rs")

    assert len(session.rows) == (3 if is_replay else 5)
    assert "too many calls" in session.text
    assert time.monotonic() - began < 40


def test_what_a_row_cannot_have_is_in_the_figures(history):
    """A reply that makes too long a row still counts."""
    write = ("write", {"path": "a.txt", "content": "1"})
    history.record(user("Go"), calls(write), result("ok"), says("Done."))
    history.answers(Go=[write, ("write", {"path": "b.txt", "content": "y" * 70_000})])

    session = history.run("--openclaw-sessions=replay")

    assert "parsed_output" in session.rows[0]["cut"]
    (added,) = session.summary["added"]
    assert added["value"]["heir/m"]["replayed"]["steps"] == 2


def test_reading_takes_little_longer_than_parsing(tmp_path):
    """A large bundle is mostly runtime events, which are skipped: a ratio, as machines differ."""
    bundle = write_bundle(tmp_path, *NOTES * 100)
    snapshot = json.dumps({"messages": [{"role": "user", "content": "x" * 90}] * 1000})
    line = '{"traceSchema": "openclaw-trajectory", "schemaVersion": 1, "source": "runtime", "type": "model.completed", "data": '
    with (bundle / "events.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{line}{snapshot}}}\n" for _ in range(200))

    def seconds(act):
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    lines = (bundle / "events.jsonl").read_bytes().splitlines()
    parsing = min(seconds(lambda: [json.loads(line) for line in lines]) for _ in range(3))
    reading = min(seconds(lambda: read_session(bundle / "manifest.json", "s")) for _ in range(3))

    assert reading < parsing


def test_a_bundle_under_another_name(history):
    """A folder that the user has named is collected by its manifest; other folders with a manifest are not."""
    shutil.move(history.record(*NOTES), history.project.folder / "bug-1234")
    history.project.write("app/manifest.json", '{"name": "my app"}')

    assert len(history.run(target="bug-1234").rows) == 2
    assert history.run(target="app").status == pytest.ExitCode.NO_TESTS_COLLECTED


WORK = (
    user("Tidy my notes"),
    calls(("read", {"path": "notes.txt"}), ("exec", {"command": "ls  -a"})),
    result("milk, bread"), result(".", 1),
    calls(("write", {"path": "list.txt", "content": "milk"})), result("written"),
    calls(("exec", {"command": "mak list"})), result("no such command", isError=True),
    calls(("exec", {"command": "make list"})), result("made"),
    says("Done."),
    user("Thanks. What is left?"), calls(("read", {"path": "notes.txt"})), result("bread"), says("Bread."),
)  # fmt: skip


def test_a_replay(history):
    """Equal calls get the recorded results; a message is finished when all changes of the record are made."""
    history.record(*WORK)
    history.answers(**{
        "Tidy my notes": [("exec", {"command": "ls -a"})],
        ".": [("write", {"path": "./list.txt", "content": "milk"})],
        "written": [("read", {"path": "list.txt"})],
        "milk": [("read", {"path": "notes.txt"})],
        "milk, bread": [("exec", {"command": "make list"})],
        "made": "Done.",
        "Thanks. What is left?": [("read", {"path": "shopping.txt"})],
    })  # fmt: skip

    session = history.run("--openclaw-sessions=replay")

    session.outcomes(passed=1, failed=1)
    row = session.row("1")
    assert row["parsed_output"] == {
        "agreement": "finished", "missing": [], "also": [], "steps": 6, "recorded_steps": 5,
    }  # fmt: skip
    results = [call["result"] for turn in row["turns"] for call in turn["calls"]]
    assert results == [".", "written", "milk", "milk, bread", "made"]
    assert (row["ended_by"], row["tool_outcome"]) == ("answer", None)
    other = session.row("2")
    assert (other["ended_by"], other["parsed_output"]["agreement"]) == ("left_the_record", "left_the_record")
    assert (
        "every recorded change of 1 of 1 of the user's messages (21–100 %), in 6 steps (recorded: 5)"
        in session.words
    )
    assert session.summary["groups"][0]["tool_use"]["tier"] is None
    assert "milk" not in json.dumps(session.load("config.json")).lower()


def test_a_replay_leaves_the_record_where_the_result_is_not_known(history):
    """At a change that is not due yet, or at a command that was never run; it says which."""
    history.record(*WORK)
    history.answers(**{
        "Tidy my notes": [("read", {"path": "notes.txt"}), ("exec", {"command": "make list"})],
        "Thanks. What is left?": [("read", {"path": "notes.txt"})],
        "bread": [("exec", {"command": "cat notes.txt > a.txt"})],
    })  # fmt: skip

    session = history.run("--openclaw-sessions=replay")

    early, other = session.row("1")["parsed_output"], session.row("2")["parsed_output"]
    assert [call["tool"] for call in early["missing"]] == ["write", "exec"]
    assert early["left_at"] == [{"tool": "exec", "arguments": {"command": "make list"}}]
    assert other["left_at"][0]["arguments"] == {"command": "cat notes.txt > a.txt"}
    assert session.row("1")["violation"].startswith("left_the_record at exec ")


def test_a_replay_plays_commands_over_files_whose_text_is_known(history):
    """Files that the record or the candidate has whole; any other command ends the exchange."""
    history.record(*WORK)
    history.answers(**{
        "Tidy my notes": [("exec", {"command": "cat notes.txt | tr a-z A-Z"})],
        "MILK, BREAD": [("write", {"path": "list.txt", "content": "milk"})],
        "written": [("exec", {"command": "grep -c i list.txt notes.txt"})],
        "list.txt:1\nnotes.txt:1": [("exec", {"command": "make list"})],
        "made": [("exec", {"command": "cat list.txt"})],
        "Thanks. What is left?": [("exec", {"command": "cat notes.txt other.txt"})],
    })  # fmt: skip

    session = history.run("--openclaw-sessions=replay")

    row = session.row("1")
    results = [call["result"] for turn in row["turns"] for call in turn["calls"]]
    assert results == ["MILK, BREAD", "written", "list.txt:1\nnotes.txt:1", "made", None]
    assert (row["ended_by"], row["parsed_output"]["agreement"]) == ("left_the_record", "finished")
    left = session.row("2")["parsed_output"]["left_at"]
    assert left == [{"tool": "exec", "arguments": {"command": "cat notes.txt other.txt"}}]


@pytest.mark.parametrize(
    "command",
    ["ls", "cat *.txt", "cat $HOME/notes.txt", "grep -r milk .", "sort notes.txt", "head notes.txt 2>/dev/null",
     "tail -f notes.txt", "cat notes.txt /proc/cpuinfo", "cat notes.txt; date", "while true; do cat notes.txt; done",
     "cat notes.txt > copy.txt", "cat absent.txt || echo none"],
)  # fmt: skip
def test_a_replay_plays_no_command_that_depends_on_the_machine(command):
    """Also if a file that it reads is known."""
    tools = load_catalogue().surface(DIRECT)
    read = {"tool": "read", "arguments": {"path": "notes.txt"}}
    record = RecordedCall(call=read, result="milk", step=1, since=0, is_change=False, is_due=False)
    replay = Replaying(RecordedWorld(record=(record,)), tools)

    assert replay.answer_turn(
        [ToolCall(name="exec", arguments=json.dumps({"command": "cat notes.txt"}))]
    ) == ("milk",)
    assert replay.answer_turn([ToolCall(name="exec", arguments=json.dumps({"command": command}))]) == ()


def test_a_provider_that_plays_worlds_cannot_replay(history):
    """It answers calls itself, so nothing is sent."""
    history.project.extend_conftest(
        "class Agent(Heir):\n    name = 'agent'\n    plays_worlds = True\n\n\nPROVIDERS += [Agent]\n"
    )
    history.record(*WORK)

    history.run("--openclaw-sessions=replay", models="agent/m").is_refused("it cannot replay a session")


@pytest.mark.parametrize(
    ("command", "is_change"),
    [
        pytest.param("ls -la && cat a.txt 2>/dev/null | grep x", False, id="looks"),
        pytest.param("cat a > b", True, id="redirected"),
        pytest.param("sed -n 1,5p a", False, id="sed"),
        pytest.param("sed -i s/a/b/ a", True, id="sed-in-place"),
        pytest.param("find . -name x -delete", True, id="find-delete"),
        pytest.param("git status", False, id="git-status"),
        pytest.param("git push", True, id="git-push"),
        pytest.param("echo $(rm a)", True, id="nested"),
        pytest.param("cat a; sh -c 'rm a'", True, id="shell"),
        pytest.param("sort -o a a", True, id="sort-into"),
    ],
)
def test_commands_that_change_something(command, *, is_change):
    """A command only looks if each of its simple commands is known to."""
    assert changes({"tool": "exec", "arguments": {"command": command}}) is is_change
