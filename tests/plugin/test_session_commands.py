"""The commands of recorded sessions: list, export, write a suite, and review."""

import errno
import io
import json
import os
import sys
import tempfile
import time

import pytest

from pytest_openclaw.cli import main
from tests.plugin.test_recorded_sessions import History
from tests.recorded import NOTES, calls, result, says, user

pytestmark = pytest.mark.newest

KEY = "box_Zq7Wx3Ec9Rv5Tb1Yn8Um4Ik2Ol6P"
OPENCLAW = """
import json, os, sys
words = sys.argv[1:]
if words[:2] == ["sessions", "--json"]:
    print("A notice.")
    print(json.dumps({"sessions": [{"key": "agent:main:a"}, {"key": "agent:work:b"}]}, indent=2))
elif words[:2] == ["sessions", "export-trajectory"]:
    key, where = words[words.index("--session-key") + 1], words[words.index("--workspace") + 1]
    print(json.dumps({"outputDir": os.path.join(where, ".openclaw", key.rpartition(":")[2])}, indent=2))
else:
    sys.exit("no such command")
"""


@pytest.fixture
def history(plain_project, monkeypatch):
    monkeypatch.chdir(plain_project.folder)
    history = History(plain_project)
    history.record(*NOTES)
    history.answers(**{"What is in my notes?": [("exec", {"command": "cat notes.txt"})]})
    return history


def test_sessions_are_listed_and_exported_by_openclaw(history, monkeypatch, capsys):
    """Its own command writes them; the next command is shown."""
    script = history.project.write("openclaw.py", OPENCLAW)
    monkeypatch.setenv("OPENCLAW_AGENT_COMMAND", f"{sys.executable} {script}")

    assert main(["sessions"]) == 0
    listed = capsys.readouterr().out
    assert main(["sessions", "agent:main:*", "--export"]) == 0
    exported = capsys.readouterr().out
    assert main(["sessions", "nobody"]) == 4

    assert listed.splitlines()[:2] == ["agent:main:a", "agent:work:b"]
    assert exported.splitlines()[0] == ".openclaw/a"
    assert "next: pytest .openclaw/a --openclaw-models=MODEL" in exported
    assert "no such session" in capsys.readouterr().err


ODD = """
import json, os, subprocess, sys
key = os.environ["BOX_KEY"]
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
if sys.argv[2] == "--json":
    print(os.environ["LISTED"].replace("KEY", key))
else:
    key = sys.argv[sys.argv.index("--session-key") + 1]
    print(json.dumps({"outputDir": os.path.abspath(key) if key[0] in "-@" else None}))
"""


@pytest.mark.parametrize(
    ("listed", "status", "said"),
    [
        ('{"sessions": 5}', 4, "no such session"),
        ('{"sessions": [1, {"key": [1]}, {"key": ""}]}', 4, "no such session"),
        ("failed: KEY", 4, "failed: [secret]"),
        ('{"sessions": [{"key": "agent:KEY"}]}', 0, "next: pytest . "),
        ('{"sessions": [{"key": "--a b"}]}', 0, "next: pytest './--a b' "),
        ('{"sessions": [{"key": "@a"}]}', 0, "next: pytest ./@a "),
    ],
)
def test_no_output_of_openclaw_is_a_crash(history, monkeypatch, capsys, listed, status, said):
    """Nor does it show a key, or wait for a process that keeps the output open."""
    monkeypatch.setenv("OPENCLAW_AGENT_COMMAND", f"{sys.executable} {history.project.write('odd.py', ODD)}")
    monkeypatch.setenv("BOX_KEY", KEY)
    monkeypatch.setenv("LISTED", listed)
    began = time.monotonic()

    assert main(["sessions"]) == status
    shown = capsys.readouterr()
    assert main(["sessions", "--export"]) == status
    exported = capsys.readouterr()

    assert said in exported.out + exported.err
    assert KEY not in "".join((*shown, *exported))
    assert time.monotonic() - began < 25


def test_a_suite_of_steps(history, capsys):
    """It has each call once, spread over tools, and is asked and judged like any other, tiers included."""
    twice = (user("Count"), calls(("exec", {"command": "wc notes.txt"})), result("1"))
    history.record(*NOTES, *twice, *twice, says("One."), name="s2")
    folders = sorted(str(path) for path in history.project.folder.glob("openclaw-*"))

    assert main(["sessions", "--write", "prompts_mine.json", *folders]) == 0
    assert main(["sessions", "--write", "prompts_mine.json", *folders]) == 4
    assert main(["sessions", "--write", "prompts_none.json", "--most=-1", *folders]) == 4
    session = history.run(target="prompts_mine.json")

    written = json.loads((history.project.folder / "prompts_mine.json").read_text())
    assert [entry["name"] for entry in written] == ["read", "answer", "exec", "answer"]
    assert "wrote 4 prompts of 2 sessions" in capsys.readouterr().out
    assert {row["prompt_id"]: row["objective_pass"] for row in session.rows} == {
        "H1": False, "H2": True, "H3": False, "H4": True,
    }  # fmt: skip
    assert session.summary["groups"][0]["tool_use"]["n"] == 2


def review(monkeypatch, letters):
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.write("\n".join(letters) + "\n")
        file.seek(0)
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["review", "last"]) == 0


def test_an_accepted_answer_counts_in_later_runs(history, monkeypatch, capsys):
    """A review shows both sides, can be undone, ends where it is stopped, and continues there."""
    history.run()

    review(monkeypatch, "q")
    review(monkeypatch, "w")
    shown = capsys.readouterr().out
    labels = history.project.folder / "openclaw-trajectory-s1/accepted.jsonl"
    assert '"label":"wrong"' in labels.read_text()
    review(monkeypatch, "")
    assert "0 differences decided, 0 left" in capsys.readouterr().out
    labels.unlink()
    review(monkeypatch, "a")
    again = history.run("--openclaw-run-id=again")

    assert 'recorded  read {"path": "notes.txt"}' in shown
    assert 'answered  exec {"command": "cat notes.txt"}' in shown
    again.outcomes(passed=2)
    row = again.row("1.1")
    assert (row["parsed_output"]["agreement"], row["parsed_output"]["accepted"]) == ("other_tool", True)


def test_no_decision_breaks_the_earlier_ones(history, monkeypatch):
    """Neither a full disk nor a last line without its end makes a line that no session can read."""
    history.run()
    labels = history.project.folder / "openclaw-trajectory-s1/accepted.jsonl"
    labels.write_text(before := '{"session": "manifest.json", "step": "9.9:x", "label": "wrong"}')
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        patch.setattr(sys, "stdin", io.StringIO("a\n"))
        assert main(["review", "last"]) == 4
    assert labels.read_text() == before

    review(monkeypatch, "a")

    history.run("--openclaw-run-id=again").outcomes(passed=2)


def full_disk(_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "wrong", [{"agreement": 1}, {"answered": [5]}, {"recorded": 7}, {"differs": [1]}, {"answered": None}]
)
def test_a_row_from_elsewhere_is_left_out_of_a_review(history, capsys, wrong):
    """Whatever it has where the others have calls."""
    run = history.run().run_dir
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    for row in rows:
        row["parsed_output"] |= wrong
    (run / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert main(["review", "last"]) == 0
    assert "0 differences decided, 0 left" in capsys.readouterr().out


def test_no_answer_to_another_suite_stops_a_review(history, capsys):
    """A model may write JSON with any keys."""
    rule = {"type": "json_keys", "required_keys": ["x"]}
    answer = json.dumps({"agreement": "same", "recorded": [], "answered": []})
    history.answers(Say=answer)
    history.project.suite({"P1": ("Say", rule)})
    history.run(target="benchmarks")

    assert main(["review", "last"]) == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders")
@pytest.mark.parametrize("is_link", [True, False])
def test_no_decision_is_written_through_a_link(history, tmp_path, capsys, is_link):
    """A bundle from elsewhere could lead it into a file of a shell."""
    history.run()
    labels = history.project.folder / "openclaw-trajectory-s1/accepted.jsonl"
    labels.symlink_to(tmp_path / ".profile") if is_link else os.mkfifo(labels)

    assert main(["review", "last"]) == 4
    assert "accepted.jsonl: cannot be read" in capsys.readouterr().err
    assert not (tmp_path / ".profile").exists()


def test_no_decision_is_written_outside_of_the_root(history, tmp_path_factory, capsys):
    """A run from elsewhere could name any session of this machine."""
    run = history.run().run_dir
    own = history.project.folder / "openclaw-trajectory-s1"
    elsewhere = own.rename(tmp_path_factory.mktemp("other") / own.name)
    for file in ("config.json", "results.jsonl"):
        text = (run / file).read_text("utf-8")
        (run / file).write_text(text.replace(f"{own.name}/", f"{elsewhere.as_posix()}/"), "utf-8")

    assert main(["review", "last"]) == 4
    assert f"add --rootdir {elsewhere}" in capsys.readouterr().err
    assert not (elsewhere / "accepted.jsonl").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminals")
def test_a_terminal_needs_no_enter(history, monkeypatch):
    """One key decides, and the terminal is left as it was."""
    import pty
    import termios

    history.run()
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    with os.fdopen(its, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        os.write(ours, b"W")
        assert main(["review", "last"]) == 0
        assert termios.tcgetattr(its) == before
    os.close(ours)

    labels = history.project.folder / "openclaw-trajectory-s1/accepted.jsonl"
    assert '"label":"wrong"' in labels.read_text()


def test_undo_and_a_wrong_record(history, monkeypatch):
    """A step whose record is wrong is left out from then on, without the undone decision."""
    history.record(*NOTES, name="s2")
    history.run()

    review(monkeypatch, "wuru" + "rs")
    session = history.run("-rs")

    session.outcomes(passed=2, failed=1, skipped=1)
    assert "a review says that the recorded step is wrong" in session.text
