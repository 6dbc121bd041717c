"""The link of an xdist worker to its controller."""

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_openclaw.asking.asker import PlannedCell
from pytest_openclaw.judging.combine import AllOf, Not
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.session.execution import Collected
from pytest_openclaw.session.xdist import CHANNEL, INPUT, WorkerLink
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.replies import Reply, Verdict
from tests.unit.judging.test_judge import OK, make_prompt
from tests.unit.reports.summaries import TARGET


class ClosedChannel:
    """As execnet's, after its other side has closed it."""

    def setcallback(self, callback: Any, endmarker: Any) -> None:
        callback(endmarker)

    def send(self, message: Any) -> None:
        raise OSError("cannot send to <Channel id=3 closed>")


def test_a_worker_ends_if_its_controller_has_closed_the_channel() -> None:
    """A cell that cannot be sent any more is not a broken harness."""
    config: Any = SimpleNamespace(workerinput={INPUT: pickle.dumps((None, {})), CHANNEL: ClosedChannel()})
    cell: Any = None

    with pytest.raises(pytest.exit.Exception, match="the session is stopping"):
        WorkerLink(config).ask("suite::P1", cell)


class OfAPlugin:
    """A validator that the controller may not be able to import."""

    type = "of_a_plugin"

    def check(self, reply: Reply) -> Verdict:
        raise AssertionError("the controller judges nothing with it")


class OpenChannel:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def setcallback(self, callback: Any, endmarker: Any) -> None:
        pass

    def send(self, message: bytes) -> None:
        self.sent.append(message)


@pytest.mark.parametrize(
    ("validator", "type_sent"),
    [
        (OfAPlugin(), "judged_by_workers"),
        (Not(validator=OfAPlugin()), "judged_by_workers"),
        (AllOf(validators=(Noop(), Not(validator=OfAPlugin()))), "judged_by_workers"),
        (AllOf(validators=(Noop(), Noop())), "all_of"),
    ],
    ids=["itself", "in-not", "in-all-of", "ours"],
)
def test_a_plugins_validator_stays_in_its_worker(validator: Any, type_sent: str) -> None:
    """The controller judges no reply with it, and none with a validator that has it as a part."""
    prompt = replace(make_prompt(OK), validator=validator)
    cell = PlannedCell(token="t", cell=Cell(prompt=prompt, target=TARGET))
    collected = Collected(cells=(cell,), divided=None, unknown_ids="")
    channel = OpenChannel()
    config: Any = SimpleNamespace(workerinput={INPUT: pickle.dumps((None, {})), CHANNEL: channel})

    WorkerLink(config).send(collected)

    assert pickle.loads(channel.sent[0]).cells[0].cell.prompt.validator.type == type_sent
