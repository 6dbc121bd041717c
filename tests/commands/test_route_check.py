"""`route --check`: OpenClaw's answers to the patch, given by a fake OpenClaw."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_openclaw.commands import main
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.providers.openclaw import installed
from pytest_openclaw.providers.openclaw.patching import check_patch
from tests.commands.routed_runs import ABLE, store_run, three_tiers
from tests.unit.reports.summaries import tool_cells
from tests.unit.stored.stored_runs import SUITE

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

FAKE = Path(__file__).parent.parent / "openclaw/fake_openclaw.py"
KEY = "sk-live-4242424242424242"
CONFIG = f"""{{
  // mine
  models: {{ providers: {{ lab: {{ apiKey: '{KEY}', baseUrl: "${{LAB_URL}}" }} }} }},
}}
"""
DRY_RUN = {"ok": True, "operations": 9, "configPath": "CONFIG", "refsChecked": 0, "skippedExecRefs": 0}
VALID = {"valid": True, "path": "CONFIG", "warnings": []}
APPLIED = "Applied 9 config update(s). Change will apply without restarting the gateway."


def _issue(path: str, message: str) -> dict[str, str]:
    return {"path": path, "message": message}


def _invalid(*issues: dict[str, str]) -> dict[str, Any]:
    error = {"type": "cli_error", "message": "OpenClaw config is invalid: CONFIG"}
    printed = {"ok": False, "error": error, "valid": False, "path": "CONFIG", "issues": list(issues)}
    return {"stdout": json.dumps(printed, indent=2), "status": 1}


def _said(value: Any) -> dict[str, Any]:
    return {"stdout": json.dumps(value)}


GOOD = {
    "dry_run": _said(DRY_RUN),
    "apply": {"stdout": APPLIED},
    "validate": _said(VALID),
    "before": _said(VALID),
}
WRONG = _issue("agents.defaults", 'Unrecognized key: "modl"')
VAULT = _issue("secrets.providers.vault.command", "is not readable: /usr/bin/vault")
STALE = _issue("plugins.entries.old", "plugin not found: old")
UNSET = _issue("models.providers.lab.baseUrl", 'Missing env var "LAB_URL" - feature will be unavailable')


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home, with a config; the current folder is a project with a run."""
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".openclaw").mkdir(parents=True)
    project.mkdir()
    (home / ".openclaw/openclaw.json").write_text(CONFIG, "utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LAB_KEY", KEY)
    for name in ("OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR", "OPENCLAW_HOME", "OPENCLAW_INCLUDE_ROOTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(installed, "LONG_S", 600.0)  # even a busy machine prints no "still waiting" line
    store_run(Path("runs/one"), three_tiers())
    return home


def _command(file: Path) -> str:
    return shlex.join([sys.executable, str(FAKE), "config", str(file)])


@pytest.fixture
def openclaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make the fake print these answers; return a function that lists the requests it received."""
    file = tmp_path / "answers.json"
    monkeypatch.setenv("OPENCLAW_AGENT_COMMAND", _command(file))

    def seen() -> list[dict[str, Any]]:
        lines = Path(f"{file}.seen")
        return [json.loads(line) for line in lines.read_text("utf-8").splitlines()] if lines.exists() else []

    def answer(**answers: Any):
        file.write_text(json.dumps({**GOOD, **answers}), "utf-8")
        return seen

    return answer


OWN = "checked by OpenClaw 2026.9.6 (fake) in a copy of {home}/.openclaw/openclaw.json:"


@pytest.mark.parametrize(
    ("answers", "status", "expected"),
    [
        pytest.param(
            {}, 0,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: ok, the config is valid"],
            id="valid",
        ),
        pytest.param(
            {"validate": _said({**VALID, "warnings": [STALE, UNSET]})}, 0,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: ok, the config is valid",
             "1 warning:", "  plugins.entries.old: plugin not found: old",
             "not resolved, because OpenClaw is given no variable here: LAB_URL"],
            id="warnings",
        ),
        pytest.param(
            {"dry_run": _said({**DRY_RUN, "skippedExecRefs": 2})}, 0,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: ok, the config is valid",
             "not resolved, because a command would fetch it: 2 secrets"],
            id="secrets-of-a-command",
        ),
        pytest.param(
            {"validate": _invalid(WRONG)}, 1,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: refused",
             '  agents.defaults: Unrecognized key: "modl"'],
            id="invalid-since-the-patch",
        ),
        pytest.param(
            {"validate": _invalid(VAULT), "before": _invalid(VAULT)}, 0,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched",
             "validate: ok, the patch adds nothing to what your config is refused for without it",
             "  secrets.providers.vault.command: is not readable: /usr/bin/vault"],
            id="invalid-before-too",
        ),
        pytest.param(
            {"validate": _invalid(VAULT, WRONG), "before": _invalid(VAULT)}, 1,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: refused",
             '  agents.defaults: Unrecognized key: "modl"'],
            id="one-issue-more-than-before",
        ),
        pytest.param(
            {"dry_run": {"stdout": json.dumps({**DRY_RUN, "ok": False, "errors": [
                {"kind": "schema", "message": "tools: no such key"},
                {"kind": "resolvability", "message": "is not set", "ref": "env:default:X"}]}), "status": 1}}, 1,
            ["dry run: refused", "  tools: no such key", "  env:default:X: is not set"],
            id="refused-by-the-dry-run",
        ),
        pytest.param(
            {"dry_run": {"stdout": json.dumps({**DRY_RUN, "ok": False, "errors": [
                {"kind": "schema", "message": "tools: no such key"}]}), "status": 1}, "before": _invalid(VAULT)}, 1,
            ["dry run: refused", "  tools: no such key"],
            id="refused-for-the-patch-in-a-config-that-has-issues",
        ),
        pytest.param(
            {"validate": _said({**VALID, "warnings": [_issue("plugins.load.paths", "unavailable: HOME/mine")]})}, 0,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: ok, the config is valid",
             "1 warning:", "  plugins.load.paths: unavailable: ~/mine"],
            id="a-path-at-home",
        ),
        pytest.param(
            {"dry_run": _invalid(WRONG), "before": _invalid(WRONG)}, 1,
            ["refused: your config as it is, before the patch", '  agents.defaults: Unrecognized key: "modl"'],
            id="a-broken-config",
        ),
        pytest.param(
            {"apply": {"stderr": "Config write would flatten $include-owned config at agents", "status": 1}}, 1,
            ["dry run: ok, the patch is accepted", "apply: refused",
             "  Config write would flatten $include-owned config at agents"],
            id="not-applied",
        ),
        pytest.param(
            {"dry_run": {"stdout": f"[plugins] {{loaded}}\n{json.dumps(DRY_RUN, indent=2)} (node:1) Warning: {{ok}}"},
             "validate": {"stderr": f'{{"valid": "no"}}\nConfig warnings: {json.dumps(VALID)}'}}, 0,
            ["dry run: ok, the patch is accepted", "apply: ok, the copy is patched", "validate: ok, the config is valid"],
            id="polluted-and-on-stderr",
        ),
        pytest.param(
            {"dry_run": {"stdout": '{"ok": false, "error": {"message": "not today: CONFIG"}}', "status": 1}}, 1,
            ["dry run: refused", "  not today: {home}/.openclaw/openclaw.json"],
            id="an-error-without-issues",
        ),
    ],
)  # fmt: skip
def test_the_answers_are_printed(
    home: Path, openclaw, answers: Any, status: int, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step has a line and, if refused, OpenClaw's words; 0 means that the patch makes nothing invalid."""
    openclaw(**answers)

    assert main(["route", "one", "--check"]) == status

    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert shown.err == ""
    assert lines[4] == "wrote runs/one/openclaw.patch.json5"
    assert lines[5:] == [OWN.format(home=home), *(f"  {line.format(home=home)}" for line in expected)]


def test_the_page_shows_what_is_printed(home: Path, openclaw, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/how-to/route.md shows the same lines, with another version and another home."""
    page = (Path(__file__).parent.parent.parent / "docs/how-to/route.md").read_text("utf-8")
    openclaw(validate=_said({**VALID, "warnings": [{**UNSET, "message": 'Missing env var "LAB_KEY"'}]}))
    Path("runs/one").rename("runs/20261122_040737")

    assert main(["route", "last", "--check"]) == 0

    shown = capsys.readouterr().out.replace("(fake)", "(eb377ac)").replace(str(home), "/home/me")
    assert f"$ pytest-openclaw route last --check\n{shown}```" in page


def test_the_steps_are_those_of_a_user(home: Path, openclaw) -> None:
    """OpenClaw gets the patch as written, a copy of the config, a clean environment, and no other file."""
    seen = openclaw()

    assert main(["route", "one", "--check"]) == 0

    patch = Path("runs/one/openclaw.patch.json5").read_text("utf-8")
    dry_run, applied, validated = seen()
    assert [one["arguments"][:2] for one in seen()] == [["config", "patch"]] * 2 + [["config", "validate"]]
    assert dry_run["arguments"][4:] == ["--dry-run", "--json"]
    assert applied["arguments"][4:] == []
    assert (dry_run["patch"], applied["patch"], validated["arguments"][2:]) == (patch, patch, ["--json"])
    assert (dry_run["config"], dry_run["mode"]) == (CONFIG, "0o600")
    assert KEY not in str([one["environ"] for one in seen()])
    assert str(home) not in str([one["environ"] for one in seen()])
    assert dry_run["environ"]["OPENCLAW_LOG_LEVEL"] == "silent"


def test_the_users_files_stay_as_they_are(home: Path, openclaw) -> None:
    """Bytes and times of the config are unchanged, and nothing is added beside it."""
    openclaw()
    config = home / ".openclaw/openclaw.json"
    os.utime(config, ns=(1, 1))

    assert main(["route", "one", "--check"]) == 0

    assert (config.read_text("utf-8"), config.stat().st_mtime_ns) == (CONFIG, 1)
    assert [path for path in home.rglob("*") if path.is_file()] == [config]


def test_no_key_is_printed(home: Path, openclaw, capsys: pytest.CaptureFixture[str]) -> None:
    """A key of the config that OpenClaw prints is hidden, in lines and in JSON."""
    issue = _issue(f"models.{KEY}", f"no good: {KEY}")
    openclaw(validate=_invalid(issue), apply={"stdout": KEY})

    assert main(["route", "one", "--check"]) == 1
    assert main(["route", "one", "--check", "--json"]) == 1

    shown = capsys.readouterr()
    assert KEY not in shown.out + shown.err
    assert shown.out.count("[secret]") == 4


def test_no_key_is_printed_by_a_crash(home: Path, openclaw, capsys: pytest.CaptureFixture[str]) -> None:
    """The path of the copy is hidden, too, and OpenClaw's last output lines are redacted."""
    openclaw(dry_run={"stderr": f"CONFIG: bad key {KEY}", "status": 1})

    assert main(["route", "one", "--check"]) == 4

    assert capsys.readouterr().err.endswith(
        f"without its JSON: {home}/.openclaw/openclaw.json: bad key [secret]\n"
    )


def test_json_has_the_answers(home: Path, openclaw, capsys: pytest.CaptureFixture[str]) -> None:
    """`checked` has each step in OpenClaw's words; without --check it is null."""
    openclaw(validate=_said({**VALID, "warnings": [STALE, UNSET]}))

    assert main(["route", "one", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checked"] is None
    assert main(["route", "one", "--check", "--json"]) == 0

    agreed = {"ok": True, "issues": [], "warnings": []}
    assert json.loads(capsys.readouterr().out)["checked"] == {
        "valid": True,
        "openclaw": "OpenClaw 2026.9.6 (fake)",
        "config": str(home / ".openclaw/openclaw.json"),
        "dry_run": agreed,
        "apply": agreed,
        "validate": {**agreed, "warnings": [STALE, UNSET]},
        "before": None,
        "unset": ["LAB_URL"],
        "skipped_refs": 0,
    }


def test_without_a_config_a_fresh_one_is_patched(
    home: Path, openclaw, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed lines say so, and no config is created in its place."""
    (home / ".openclaw/openclaw.json").unlink()
    seen = openclaw()

    assert main(["route", "one", "--check"]) == 0

    assert "(fake) in a fresh config, because there is none yet:" in capsys.readouterr().out
    assert json.loads(seen()[0]["config"]) == {}
    assert list((home / ".openclaw").iterdir()) == []


def test_another_config_can_be_named(home: Path, openclaw, capsys: pytest.CaptureFixture[str]) -> None:
    """`--config FILE` is checked instead of OpenClaw's default config."""
    seen = openclaw()
    Path("mine.json5").write_text("{a: 1}", "utf-8")

    assert main(["route", "one", "--check", "--config", "mine.json5"]) == 0

    assert f"in a copy of {Path('mine.json5').absolute()}:" in capsys.readouterr().out
    assert seen()[0]["config"] == "{a: 1}"


def test_a_printed_patch_is_checked_beside_it(
    home: Path, openclaw, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--out -` the answer goes to stderr, so that the patch can still be piped."""
    openclaw(dry_run=_invalid(WRONG), before=_invalid(WRONG))

    assert main(["route", "one", "--check", "--out", "-"]) == 1

    shown = capsys.readouterr()
    assert shown.out.startswith("// A patch for OpenClaw")
    assert "checked" not in shown.out
    assert 'route:     agents.defaults: Unrecognized key: "modl"\n' in shown.err


def test_nothing_conclusive_is_not_valid(home: Path, openclaw, capsys: pytest.CaptureFixture[str]) -> None:
    """OpenClaw refuses an empty patch, so it is not called, and an unchecked patch does not exit with 0."""
    seen = openclaw()
    store_run(Path("runs/few"), tool_cells(4, 1, ABLE, suite=SUITE, tools_offered=11))

    assert main(["route", "few", "--check"]) == 1

    assert "nothing to apply" in capsys.readouterr().err
    assert seen() == []


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(
            {"dry_run": {"stdout": "Segmentation", "stderr": "out of memory", "status": 134}},
            "openclaw config patch --dry-run ended with exit status 134 (SIGABRT) without its JSON: out of memory",
            id="crash",
        ),
        pytest.param(
            {"validate": {"stdout": '{"valid": tr'}},
            "openclaw config validate ended with exit status 0 without its JSON",
            id="cut-off",
        ),
    ],
)
def test_no_answer_is_an_error(
    home: Path, openclaw, answers: Any, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, exit status 4; the patch is written all the same."""
    openclaw(**answers)

    assert main(["route", "one", "--check"]) == 4

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith(f"route: {expected}\n")
    assert Path("runs/one/openclaw.patch.json5").exists()


@pytest.mark.parametrize(
    ("words", "environ", "expected"),
    [
        pytest.param(
            ["--check"], {"OPENCLAW_AGENT_COMMAND": "nonesuch"},
            "there is no command 'nonesuch'. Install it (npm install -g openclaw), or set OPENCLAW_AGENT_COMMAND.",
            id="no-openclaw",
        ),
        pytest.param(
            ["--check", "--config=none.json"], {}, "/none.json: No such file or directory", id="no-such-config"
        ),
        pytest.param(
            ["--config=none.json"], {}, "--config says where to check the patch; give --check too", id="no-check"
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused(
    home: Path,
    openclaw,
    words: list[str],
    environ: dict[str, str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line on stderr, exit status 4."""
    openclaw()
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert main(["route", "one", *words]) == 4

    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert expected in shown.err


def test_a_hanging_openclaw_is_ended(home: Path, openclaw) -> None:
    """After the time limit the message names the start that did not end; no process or file is left."""
    seen = openclaw(apply={"hangs": True})

    with pytest.raises(OpenClawError, match=r"^openclaw config patch did not end within 2 s$"):
        check_patch("{}", os.environ, patience_s=2)

    child = seen()[-1]["child"]
    for _ in range(100):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"the child {child} is still there")


def test_a_slow_start_is_reported(
    home: Path, openclaw, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each start of OpenClaw that takes long has a line on stderr."""
    openclaw()
    monkeypatch.setattr(installed, "LONG_S", 0.0)

    assert main(["route", "one", "--check"]) == 0

    waits = [f"waiting for openclaw config {what} …" for what in ("patch", "patch", "validate")]
    assert [line for line in capsys.readouterr().err.splitlines() if "config" in line] == waits
