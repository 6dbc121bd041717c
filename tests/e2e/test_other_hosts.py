"""Workers on other hosts: each uses its own local models, and only rows and reports come back."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.other_hosts import LABS, Host, Lab, Outcome, lay_project
from tests.e2e.processes import children, wait_until

pytestmark = pytest.mark.workers

N = 16
SECONDS = 0.1
INI = "[pytest]\ntestpaths = benchmarks\nfilterwarnings = error\n"
SUITE = [
    {"id": f"P{n}", "prompt": f"word {n}", "validator": {"type": "exact", "value": f"word {n}"}}
    for n in range(N)
]
IN_PYTHON = """
import pytest

@pytest.mark.openclaw(id="R1", prompt="a word from Python")
def test_python(reply):
    assert reply.text == "a word from Python"

def test_without_a_model():
    pass
"""
PROMPTS = {prompt["prompt"] for prompt in SUITE} | {"a word from Python"}
FILES = {
    "pytest.ini": INI,
    "benchmarks/prompts_words.json": json.dumps(SUITE),
    "benchmarks/test_words.py": IN_PYTHON,
}


@pytest.fixture(
    params=[pytest.param(name, marks=() if name == "loopback" else pytest.mark.nightly) for name in LABS]
)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Two hosts and the controller's machine, each with its own copy of the project."""
    with LABS[request.param](tmp_path, ["north", "south"]) as lab:
        for host in (lab.leader, *lab.hosts):
            lay_project(host, FILES)
        yield lab


def run_held(lab: Lab, arrivals: dict[str, int], *words: str) -> Outcome:
    """Run pytest; models of some hosts hold their replies until each has this many prompts at once."""
    machines = [host for host in (lab.leader, *lab.hosts) if host.name in arrivals]
    for host in machines:
        host.hold()
    session = lab.begin(*words)
    come = wait_until(lambda: all(host.n_arrived >= arrivals[host.name] for host in machines))
    time.sleep(0.5)  # more requests would arrive in this time
    for host in machines:
        host.let_go()
    ended = lab.end(session)
    assert come, ended.text
    return ended


def overlap(one: Host, other: Host) -> bool:
    """Whether two servers were ever busy at the same time."""
    return any(
        a["began"] < b["ended"] and b["began"] < a["ended"] for a, b in product(one.asked, other.asked)
    )


def n_rows(lab: Lab, host: Host) -> int:
    """How many of the prompts answered by a host's model have a row by now."""
    path = lab.leader.folder / "runs" / "run" / "results.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    rows = {json.loads(line)["raw_output"] for line in lines if line.endswith("\n")}
    return sum(line["prompt"] in rows for line in host.asked)


def host_names(lab: Lab, inventory: dict[str, Any]) -> dict[str, Host]:
    """The hosts by their names in rows."""
    if lab.kind == "namespaces":
        assert set(inventory["hosts"]) == {host.name for host in lab.hosts}
        return {host.name: host for host in lab.hosts}
    bases = {
        name: facts["providers"]["ollama_openai"]["base_url"] for name, facts in inventory["hosts"].items()
    }
    return {name: host for name, base in bases.items() for host in lab.hosts if host.model_address in base}


def test_each_host_asks_its_own_local_server(lab: Lab) -> None:
    """Both servers work at once, each on one cell at a time, and every cell has one row."""
    north, south = lab.hosts
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, SECONDS)
        specs += lab.serve_workers(host)

    arrivals = {"north": 1, "south": 1}
    session = run_held(lab, arrivals, "-d", *specs, "--openclaw-models=ollama_openai/m")

    assert session.status == 0, session.text
    assert sorted(line["prompt"] for host in lab.hosts for line in host.asked) == sorted(PROMPTS)
    assert (north.at_once, south.at_once) == (1, 1)
    assert (north.n_warm_ups, south.n_warm_ups) == (1, 1)
    assert abs(len(north.asked) - len(south.asked)) <= 1
    assert overlap(north, south)
    rows = session.run.rows
    assert sorted(row["raw_output"] for row in rows) == sorted(PROMPTS)
    (group,) = session.run.summary["groups"]
    assert (group["n_ok"], group["n_success"]) == (len(PROMPTS), len(PROMPTS))


@pytest.mark.nightly
def test_a_row_names_its_host(lab: Lab) -> None:
    """Each row names the host that sent the request, and the inventory lists the hosts separately."""
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, 0.0)
        specs += lab.serve_workers(host)

    run = lab.run("-d", *specs, "--openclaw-models=ollama_openai/m").run

    inventory = run.load("inventory.json")
    names = host_names(lab, inventory)
    assert len(names) == 2
    for name, host in names.items():
        measured = {row["raw_output"] for row in run.rows if row["host"] == name}
        assert measured == {line["prompt"] for line in host.asked}
        facts = inventory["hosts"][name]
        assert facts["targets"]["ollama_openai/m"]["warm_up"]["ok"] is True
        assert facts["memory_total_bytes"] > 0
        assert {f"resources_ollama_openai__m_{name}_{when}.txt" for when in ("before", "after")} <= set(
            run.files
        )
    assert inventory["targets"] == {}
    assert inventory["host"]["name"] not in names
    config = run.load("config.json")
    assert config["targets"] == [
        {
            "provider": "ollama_openai",
            "model": "m",
            "thinking_level": None,
            "surface": "listed",
            "n_cells": len(PROMPTS),
        }
    ]
    assert {prompt["prompt"] for prompt in config["prompts"]} == PROMPTS


@pytest.mark.nightly
def test_two_workers_of_one_host_share_its_server(lab: Lab) -> None:
    """A host's local server gets one request at a time, however many workers the host has."""
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, 0.02)
        specs += lab.serve_workers(host, n=2)

    session = lab.run("-d", *specs, "--openclaw-models=ollama_openai/m")

    assert session.status == 0, session.text
    assert sorted(row["raw_output"] for row in session.run.rows) == sorted(PROMPTS)
    for host in lab.hosts:
        assert (host.at_once, host.n_warm_ups) == (1, 1)
        assert len(host.asked) in {len(PROMPTS) // 2, len(PROMPTS) // 2 + 1}


@pytest.mark.nightly
def test_a_common_folder_for_temporary_files_joins_no_hosts(tmp_path: Path) -> None:
    """Hosts that share one disk remain separate: each target is warmed up on each."""
    common = tmp_path / "common"
    common.mkdir()
    with LABS["namespaces"](tmp_path, ["north", "south"]) as lab:
        specs = []
        for host in (lab.leader, *lab.hosts):
            lay_project(host, FILES)
            host.environ["TMPDIR"] = str(common)
        for host in lab.hosts:
            lab.serve_models(host, 0.0)
            specs += lab.serve_workers(host)

        session = lab.run("-d", *specs, "--openclaw-models=ollama_openai/m")

        assert session.status == 0, session.text
        assert [host.n_warm_ups for host in lab.hosts] == [1, 1]
    assert list(common.glob("pytest-openclaw-*")) == []


@pytest.mark.nightly
def test_a_wider_limit_holds_on_each_host(lab: Lab) -> None:
    """If two concurrent requests are allowed, each host's server gets two, one from each of its workers."""
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, SECONDS)
        specs += lab.serve_workers(host, n=2)

    arrivals = {"north": 2, "south": 2}
    session = run_held(
        lab, arrivals, "-d", *specs, "--openclaw-models=ollama_openai/m", "--openclaw-concurrency=2"
    )

    assert session.status == 0, session.text
    assert len(session.run.rows) == len(PROMPTS)
    assert [host.at_once for host in lab.hosts] == [2, 2]


@pytest.mark.nightly
def test_a_server_for_all_keeps_its_limit(lab: Lab) -> None:
    """A server that all hosts reach is one endpoint: its limit applies to all of them together."""
    far = f"{lab.leader.address}:{lab.leader.first_port}"
    lab.serve_models(lab.leader, SECONDS, far)
    specs = []
    for host in lab.hosts:
        host.environ["OLLAMA_HOST"] = far
        specs += lab.serve_workers(host)

    session = run_held(
        lab, {"leader": 3}, "-d", *specs, "--openclaw-models=ollama_openai/m", "--openclaw-concurrency=3"
    )

    assert session.status == 0, session.text
    assert sorted(line["prompt"] for line in lab.leader.asked) == sorted(PROMPTS)
    assert len(session.run.rows) == len(PROMPTS)
    assert lab.leader.at_once == 3


@pytest.mark.nightly
def test_a_key_stays_where_it_is_set(lab: Lab) -> None:
    """A host uses the key of its own environment; the key of the controller's machine is not sent."""
    lab.leader.environ["OLLAMA_API_KEY"] = "leaders-secret"
    north, south = lab.hosts
    north.environ["OLLAMA_API_KEY"] = "norths-secret"
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, 0.0)
        specs += lab.serve_workers(host)

    session = lab.run("-d", *specs, "--openclaw-models=ollama_openai/m")

    assert session.status == 0, session.text
    assert {line["key"] for line in north.asked} == {"Bearer norths-secret"}
    assert {line["key"] for line in south.asked} == {None}
    written = [path.read_text("utf-8") for path in session.run.path.iterdir()]
    assert not [text for text in [*written, session.text] if "-secret" in text]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({**SUITE[0], "prompt": "another"}, "is not the same on", id="other-text"),
        pytest.param(None, "is on {host} and not here", id="missing"),
    ],
)
def test_every_host_has_the_same_suite(lab: Lab, changed: Any, message: str) -> None:
    """A copy of a suite that differs is refused before the first request."""
    path = lab.leader.project / "benchmarks" / "prompts_words.json"
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, 0.0)
        specs += lab.serve_workers(host)
    if changed is None:
        lab.remove(lab.leader, path)
    else:
        lab.write(lab.leader, path, json.dumps([changed, *SUITE[1:]]))

    session = lab.run("-d", *specs, "--openclaw-models=ollama_openai/m")

    assert session.status == 4, session.text
    assert message.partition("{")[0] in session.text
    assert not [line for host in lab.hosts for line in host.asked]


@pytest.mark.nightly
def test_nothing_is_left_behind(lab: Lab) -> None:
    """A host has no new file, except pytest, which xdist copies into the working folder."""
    before = {host.name: lab.files(host) for host in lab.hosts}
    specs = []
    for host in lab.hosts:
        specs += lab.serve_workers(host, n=2)

    session = lab.run("-d", *specs, "--openclaw-models=ollama_openai/m")

    assert session.status == 1, session.text  # no model answered
    assert {row["availability_status"] for row in session.run.rows} == {"skipped_unavailable"}
    for host in lab.hosts:
        new = lab.files(host) - before[host.name]
        assert new == set(), new


@pytest.mark.nightly
def test_a_host_that_dies_costs_its_own_cells(lab: Lab) -> None:
    """Without restarts the other hosts continue to their end, and the dead host's replies are on disk."""
    north, south = lab.hosts
    for host in lab.hosts:
        lab.serve_models(host, SECONDS)
    spec = f"socket={north.address}:{north.first_port}//chdir={north.project}"
    worker = lab.start(
        north, sys.executable, "-u", "-m", "execnet.script.socketserver",
        f"{north.address}:{north.first_port}",
    )  # fmt: skip
    others = lab.serve_workers(south)
    north.hold(after=3)

    session = lab.begin(
        "-d", "--tx", spec, *others, "--max-worker-restart=0", "--openclaw-models=ollama_openai/m"
    )
    assert wait_until(lambda: north.n_arrived == 4 and n_rows(lab, north) == 3)
    worker.kill()
    north.let_go()
    ended = lab.end(session)

    assert ended.status == 1, ended.text
    rows = {row["raw_output"] for row in ended.run.rows}
    assert {line["prompt"] for line in south.asked} <= rows
    assert len(south.asked) in {len(PROMPTS) // 2, len(PROMPTS) // 2 + 1}
    assert {line["prompt"] for line in north.asked[:3]} <= rows
    assert len(rows) == 3 + len(south.asked)
    assert ended.run.summary["state"] == "interrupted"


@pytest.mark.nightly
def test_over_ssh(tmp_path: Path) -> None:
    """The same over ssh, with each host's address given."""
    with LABS["loopback"](tmp_path, ["north", "south"]) as lab:
        specs = []
        for host in (lab.leader, *lab.hosts):
            lay_project(host, FILES)
        for host in lab.hosts:
            lab.serve_models(host, SECONDS)
            specs += lab.serve_ssh(host)

        arrivals = {"north": 1, "south": 1}
        session = run_held(lab, arrivals, "-d", *specs, "--openclaw-models=ollama_openai/m")

        assert session.status == 0, session.text
        assert sorted(row["raw_output"] for row in session.run.rows) == sorted(PROMPTS)
        assert [host.at_once for host in lab.hosts] == [1, 1]
        assert overlap(*lab.hosts)


@pytest.mark.nightly
def test_an_interrupted_run_goes_on_over_the_same_hosts(lab: Lab) -> None:
    """Answered cells are not asked again, and a host keeps its name, whichever connects first."""
    north, south = lab.hosts
    specs = []
    for host in lab.hosts:
        lab.serve_models(host, SECONDS)
        specs.append(lab.serve_workers(host))
        host.hold(after=3)
    words = ("-d", "--openclaw-models=ollama_openai/m")
    session = lab.begin(*words, *specs[0], *specs[1])
    assert wait_until(lambda: all(host.n_arrived == 4 and n_rows(lab, host) == 3 for host in lab.hosts))
    session.send_signal(signal.SIGINT)
    assert wait_until(lambda: session.poll() is not None)
    for host in lab.hosts:
        host.let_go()
    interrupted = lab.end(session)
    assert interrupted.status == 2, interrupted.text
    before = interrupted.run.rows
    assert len(before) == 6
    # The held replies were lost; the servers have to finish them before the resumed run starts.
    assert wait_until(lambda: all(len(host.asked) == 4 for host in lab.hosts))
    n_asked = Counter(line["prompt"] for host in lab.hosts for line in host.asked)

    for host in lab.hosts:
        host.first_port += 1  # the first port may stay in use for a moment
    specs = [lab.serve_workers(host) for host in lab.hosts]
    resumed = lab.run(*words, *specs[1], *specs[0], "--openclaw-resume=last")

    assert resumed.status == 0, resumed.text
    rows = resumed.run.rows
    assert sorted(row["raw_output"] for row in rows) == sorted(PROMPTS)
    assert [row for row in rows if row in before] == before
    asked = Counter(line["prompt"] for host in lab.hosts for line in host.asked)
    assert not [row["raw_output"] for row in before if asked[row["raw_output"]] != n_asked[row["raw_output"]]]
    assert (north.at_once, south.at_once) == (1, 1)
    for name, host in host_names(lab, resumed.run.load("inventory.json")).items():
        measured = {row["raw_output"] for row in rows if row["host"] == name}
        assert measured <= {line["prompt"] for line in host.asked}


@pytest.mark.nightly
@pytest.mark.engine
def test_each_host_has_its_own_engine(tmp_path: Path, embedded_model: str) -> None:
    """The embedded engine runs once on each host, for all its workers, and ends with them."""
    few = [{"id": f"P{n}", "prompt": "Say yes.", "max_output_tokens": 4} for n in range(8)]
    with LABS["namespaces"](tmp_path, ["north", "south"]) as lab:
        specs = []
        for host in (lab.leader, *lab.hosts):
            lay_project(host, {"pytest.ini": INI, "benchmarks/prompts_few.json": json.dumps(few)})
        for host in lab.hosts:
            specs += lab.serve_workers(host, n=2)

        session = lab.run("-d", *specs, f"--openclaw-models=llama_cpp/{embedded_model}")

        assert session.status == 0, session.text
        assert Counter(row["host"] for row in session.run.rows) == {"north": 4, "south": 4}
        for facts in session.run.load("inventory.json")["hosts"].values():
            (served,) = facts["targets"].values()
            assert served["warm_up"]["ok"] is True
        assert wait_until(lambda: not [1 for server in lab.servers for _ in children(server.pid)])


@pytest.mark.parametrize("words", [("-n", "2"), ()], ids=["with-n", "without-d"])
def test_hosts_that_would_not_be_used_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Where xdist ignores `--tx`, this machine would be measured instead of the named host."""
    with LABS["loopback"](tmp_path, []) as lab:
        lay_project(lab.leader, FILES)

        session = lab.run(*words, "--tx", "socket=127.0.0.1:9", "--openclaw-models=ollama_openai/m")

    assert session.status == 4, session.text
    assert "write `-d --tx=…`, without -n" in session.text
