"""`--openclaw-repeat` and `--openclaw-until-conclusive`: the same prompts again, as often as needed."""

from collections import Counter

import pytest

from tests.plugin.conftest import NOOP

pytestmark = pytest.mark.newest

DF = {"type": "tool_invocation", "expected_tools": ["df"]}

# `bad` uses no tool, `shaky` uses one for two prompts in each repeat, always others, `fair` for every third,
# `same` for the first six, `good` always. Models named in down.txt are unavailable, and the test of the cell in
# deadly.txt ends its process, once.
PUPIL = """
import os


class Pupil(Provider):
    name = "pupil"
    takes_tools = True

    async def ask(self, request):
        note(request.model, request.prompt, request.seed)
        down = FOLDER / "down.txt"
        if down.exists() and request.model in down.read_text().split():
            raise CallFailed(faults.timed_out("pupil", 1.0))
        word, _, rest = request.prompt.partition(" ")
        if word != "tool":
            return Reply(text=rest)
        number = int(rest)
        is_right = {
            "bad": False,
            "shaky": number // 2 == (request.seed or 1) - 1,
            "fair": (number + (request.seed or 1)) % 3 == 0,
            "same": number < 6,
            "good": True,
        }[request.model.partition("-")[0]]
        return Reply(text="`df -h`" if is_right else "No.")


PROVIDERS.append(Pupil)


def pytest_runtest_setup(item):
    deadly = FOLDER / "deadly.txt"
    if deadly.exists() and item.nodeid.endswith(deadly.read_text()):
        deadly.unlink()
        os._exit(1)
"""


@pytest.fixture(name="project")
def _project(project):
    project.extend_conftest(PUPIL)
    return project


@pytest.fixture(name="plain_project")
def _plain_project(plain_project):
    plain_project.extend_conftest(PUPIL)
    return plain_project


def tools(n):
    return {f"T{number}": (f"tool {number}", DF) for number in range(n)}


def calls_by_model(session):
    return Counter(call.partition(" ")[0] for call in session.asked)


def cells(rows):
    return [(row["model"], row["prompt_id"], row["repeat"]) for row in rows]


@pytest.mark.parametrize(
    ("args", "target", "wanted"),
    [
        pytest.param([], "benchmarks/prompts_a.json::P1", {("P1", 1), ("P1", 2)}, id="prompt"),
        pytest.param([], "benchmarks/prompts_a.json::P1[pupil/a-r2]", {("P1", 2)}, id="cell"),
        pytest.param(["-k", "a-r1]"], "benchmarks", {("P1", 1), ("P10", 1)}, id="one-repeat"),
    ],
)
def test_selection_knows_repeats(plain_project, args, target, wanted):
    """A prompt's id means all its repeats, a cell's whole id only that one."""
    plain_project.suite({"P1": ("say one", NOOP), "P10": ("say ten", NOOP)})

    session = plain_project.run("--openclaw-repeat=2", *args, models="pupil/a", target=target)

    assert {(row["prompt_id"], row["repeat"]) for row in session.rows} == wanted
    assert session.summary["state"] == "finished"


@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.nightly), 4])
def test_each_target_is_repeated_until_it_is_conclusive(project, concurrency):
    """One target is conclusive early, one at the next look, one not after all, one answers the same each time."""
    project.suite({**tools(12), "P1": ("say one", NOOP)})

    session = project.run(
        "--openclaw-until-conclusive",
        "--openclaw-repeat=4",
        f"--openclaw-concurrency={concurrency}",
        "-rs",
        models="pupil/bad,pupil/shaky,pupil/fair,pupil/same",
    )

    assert calls_by_model(session) == {"bad": 13, "shaky": 37, "fair": 49, "same": 25}
    assert "tier 3 is settled after 1 repeat" in session.text
    assert "tier 3 is settled after 3 repeats" in session.text
    assert "all repeats are alike after 2 repeats: only new prompts can settle the tier" in session.text
    assert "same: all repeats of each prompt are alike; only new" in session.text
    groups = {group["model"]: group for group in session.summary["groups"]}
    uses = {model: group["tool_use"] for model, group in groups.items()}
    assert {model: use["conclusive"] for model, use in uses.items()} == {
        "bad": True, "shaky": True, "fair": False, "same": False,
    }  # fmt: skip
    assert all(use["looks"] == [1, 3, 4] for use in uses.values())
    assert groups["bad"]["resources_after"] is not None
    # The repeats that were not needed are not cells of the run.
    assert (session.summary["n_cells"], session.summary["state"]) == (len(session.rows), "finished")
    assert [row["repeat"] for row in session.rows if row["prompt_id"] == "P1"] == [1, 1, 1, 1]
    config = session.load("config.json")
    settled = {target["model"]: target.get("settled", {}).get("repeat") for target in config["targets"]}
    assert settled == {"bad": 1, "shaky": 3, "fair": None, "same": 2}
    assert config["looks"] == [1, 3, 4]


def test_a_hopeless_target_is_settled_within_the_suite(plain_project):
    """After 12 of 26 prompts; the terminal says so, and so does the run when it is rescored."""
    rule = {"type": "tool_call", "calls": [{"name": "read"}]}
    prompts = [
        {"id": f"N{n}", "prompt": f"tool {n}", "tools": ["read"], "validator": rule} for n in range(26)
    ]
    plain_project.suite(prompts)

    session = plain_project.run("--openclaw-until-conclusive", "--openclaw-run-id=one", models="pupil/bad")
    rescored = plain_project.command("rescore", "one")

    assert len(session.asked) == len(session.rows) == 12
    for text in (session.text, rescored.stdout):
        assert "after 12 of 26 prompts, so the others were not asked" in text
    again = plain_project.stored("one-rescored").load("config.json")
    assert again["targets"] == session.load("config.json")["targets"]


@pytest.mark.workers
@pytest.mark.parametrize(
    "dist",
    [
        "worksteal",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("load", "loadfile", "loadscope")),
    ],
)
def test_every_distribution_ends(plain_project, dist):
    """Under every `--dist` the run ends, whichever worker is ahead, and every reply has its row."""
    for name in ("prompts_a", "prompts_b", "prompts_c"):
        plain_project.suite(tools(5), name=f"{name}.toml")

    session = plain_project.run(
        "--openclaw-until-conclusive", "-n", "2", f"--dist={dist}", models="pupil/bad,pupil/shaky"
    )

    assert len(session.rows) == len(session.asked)
    assert session.summary["state"] == "finished"
    assert {(row["model"], row["repeat"]) for row in session.rows} >= {("bad", 1), ("shaky", 1)}


@pytest.mark.nightly
@pytest.mark.workers
def test_a_replacement_worker_knows_the_decisions(plain_project):
    """It continues with the repeat in which the previous one died, and the others wait for it."""
    plain_project.suite(tools(12))
    (plain_project.folder / "deadly.txt").write_text("T5[pupil/shaky-r2]")

    words = ("--openclaw-until-conclusive", "--openclaw-concurrency=4", "-n2", "-rs")
    session = plain_project.run(*words, models="pupil/bad,pupil/shaky")

    assert not (plain_project.folder / "deadly.txt").exists()
    assert "tier 3 is settled after 3 repeats" in session.text
    assert Counter((row["model"], row["repeat"]) for row in session.rows) == {
        ("bad", 1): 12,
        ("shaky", 1): 12,
        ("shaky", 2): 12,
        ("shaky", 3): 12,
    }
    assert session.summary["state"] == "finished"


@pytest.mark.nightly
@pytest.mark.workers
def test_a_waiting_worker_stops_with_the_session(plain_project):
    """A worker that waits for another one's row does not block a session that `-x` ends."""
    plain_project.suite(tools(20))
    plain_project.extend_conftest(
        "\n\nimport time\n\ndef pytest_runtest_call(item):\n"
        "    if '::T19[' in item.nodeid:\n        time.sleep(1)\n        assert False, 'late'\n"
    )

    session = plain_project.run(
        "--openclaw-until-conclusive", "--openclaw-concurrency=4", "-n", "2", "-x", models="pupil/good"
    )

    assert session.status != pytest.ExitCode.OK
    assert session.summary["state"] == "interrupted"
    assert {row["repeat"] for row in session.rows} <= {1, 2}


def test_a_target_that_answers_nothing_is_not_asked_again(project):
    """After a repeat without a reply there is no next one, and a resumed run continues from there."""
    project.suite(tools(10))
    (project.folder / "down.txt").write_text("shaky")
    words = ("--openclaw-until-conclusive", "--openclaw-retries=0", "--openclaw-concurrency=1")
    session = project.run(*words, "--openclaw-run-id=r", "-rs", models="pupil/shaky")

    assert calls_by_model(session) == {"shaky": 3}
    assert "nothing was answered in repeat 1" in session.text
    assert "--openclaw-resume=r" in session.text

    (project.folder / "down.txt").unlink()
    resumed = project.run("--openclaw-resume=r", "-rs", models=None)

    assert calls_by_model(resumed) == {"shaky": 30}
    assert "tier 3 is settled after 3 repeats" in resumed.text
    assert resumed.summary["n_cells"] == 30


def test_a_resumed_run_continues_until_it_is_conclusive(project):
    """A run of one repeat continues until the tiers are conclusive; kept rows count."""
    project.suite(tools(10))
    project.run("--openclaw-run-id=r", models="pupil/bad,pupil/good-10")

    words = ("--openclaw-until-conclusive", "--openclaw-repeat=2", "-rs")
    more = project.run("--openclaw-resume=r", *words, models=None)
    n_cells = more.summary["n_cells"]
    again = project.run("--openclaw-resume=r", models=None)

    assert calls_by_model(more) == {"good-10": 10}
    assert "tier 3 is settled after 1 repeat" in more.text
    assert again.asked == []
    assert again.summary["n_cells"] == n_cells == 30
