"""Wrong classes of plugins, and the link of an xdist worker to its controller."""

import pickle
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pluggy
import pytest

from pytest_openclaw import Provider, hookspecs
from pytest_openclaw.asking.asker import PlannedCell
from pytest_openclaw.judging.combine import AllOf, Not
from pytest_openclaw.judging.text import Exact, Noop
from pytest_openclaw.providers import BUILTIN as PROVIDERS
from pytest_openclaw.reports.pages import BUILTIN as REPORTS
from pytest_openclaw.session.execution import Collected
from pytest_openclaw.session.registries import (
    describe,
    make_providers,
    provider_classes,
    reports_of,
    validator_registry,
)
from pytest_openclaw.session.xdist import CHANNEL, INPUT, WorkerLink
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Endpoint, Settings, is_openclaw
from tests.unit.judging.test_judge import OK, make_prompt
from tests.unit.reports.summaries import TARGET


def _provider(name):
    return type("Mine", (Provider,), {"name": name, "ask": lambda self, request: None})


def _report(name):
    return type("Mine", (), {"name": name, "render": lambda self, summary: ""})


class _NeedsArgument:
    name = "a.txt"

    def __init__(self, needed):
        self.needed = needed


WRONG = {
    "validator-twice": ("validators", [Exact], "the validator 'exact' is claimed by built-in and by mine; rename one"),
    "no-validator": ("validators", ["exact"], "mine: 'exact' is not a validator: write a frozen dataclass"),
    "validator-without-a-dataclass": ("validators", [type("Plain", (), {"type": "plain", "check": lambda self, reply: None})], "Plain'> is not a validator"),
    "validator-without-a-type": ("validators", [dataclass(type("Plain", (), {"check": lambda self, reply: None}))], "Plain'> is not a validator"),
    "validator-without-check": ("validators", [dataclass(type("Plain", (), {"type": "plain"}))], "Plain'> is not a validator"),
    "provider-twice": ("providers", [_provider("ollama_openai")], "'ollama_openai' is claimed by built-in and by mine"),
    "provider-with-a-slash": ("providers", [_provider("a/b")], "is not a provider: derive the class from pytest_openclaw.Provider"),
    "provider-without-a-name": ("providers", [type("Mine", (), {})], "is not a provider"),
    "provider-without-the-base-class": ("providers", [type("Fake", (), {"name": "fake", "ask": None})], "Fake'> is not a provider: derive the class"),
    "provider-without-ask": ("providers", [type("Mine", (Provider,), {"name": "mine", "aks": None})], "has no ask; write async def ask(self, request)"),
    "nothing": ("providers", None, "mine: pytest_openclaw_providers returned None, not a list of classes. Write for example `return [MyClass]`"),
    "number": ("providers", [7], "mine: 7 is not a provider"),
    "no-list": ("validators", 7, "mine: pytest_openclaw_validators returned 7, not a list of classes"),
    "report-twice": ("reports", [_report("SUMMARY.MD")], "the report 'SUMMARY.MD' is claimed by built-in and by mine"),
    "rows": ("reports", [_report("results.jsonl")], "cannot be named 'results.jsonl'"),
    "config-in-capitals": ("reports", [_report("Config.json")], "cannot be named 'Config.json'"),
    "snapshot": ("reports", [_report("resources_x_after.txt")], "cannot be named"),
    "path": ("reports", [_report("../x")], "cannot be named '../x'"),
    "lock": ("reports", [_report(".lock")], "cannot be named '.lock'"),
    "report-without-render": ("reports", [7], "mine: 7 is not a report: it needs a name and a render(summary)"),
    "report-that-cannot-be-made": ("reports", [_NeedsArgument], "mine: _NeedsArgument cannot be made: TypeError"),
}  # fmt: skip


def _config(hook, returned):
    manager = pluggy.PluginManager("pytest")
    manager.add_hookspecs(hookspecs)
    builtin = {"validators": [Exact], "providers": PROVIDERS, "reports": REPORTS}
    for name, value in (("built-in", builtin[hook]), ("mine", returned)):
        function = pluggy.HookimplMarker("pytest")(lambda value=value: value)
        manager.register(SimpleNamespace(**{f"pytest_openclaw_{hook}": function}), name)
    return SimpleNamespace(hook=manager.hook)


COLLECTED = {"validators": validator_registry, "providers": provider_classes, "reports": reports_of}


@pytest.mark.parametrize(
    ("hook", "returned", "message"), [pytest.param(*case, id=name) for name, case in WRONG.items()]
)
def test_a_wrong_plugin_is_named(hook, returned, message):
    """An invalid or duplicate class is a usage error before anything is asked."""
    with pytest.raises(pytest.UsageError) as caught:
        COLLECTED[hook](_config(hook, returned))

    assert message in str(caught.value)
    assert "mine" in str(caught.value)


@pytest.mark.parametrize("hook", COLLECTED)
def test_an_empty_list_adds_nothing(hook):
    """A hook may have nothing to add; without a list, a forgotten `return` would look the same."""
    assert len(COLLECTED[hook](_config(hook, []))) > 0


def test_the_installed_openclaw_is_recorded_under_any_name():
    """`config.json` says which providers send the real request."""
    classes = {provider.name: provider for provider in PROVIDERS}
    endpoints = tuple(
        Endpoint(name=name, kind=kind, base_url="http://127.0.0.1:9/v1")
        for name, kind in (("gate", "openclaw_agent"), ("lab", "ollama_openai"))
    )
    targets = tuple(Target(provider=name, model="m") for name in ("gate", "lab"))

    described = describe(make_providers(classes, Settings(targets=targets, endpoints=endpoints)))

    assert {name: one.get("is_openclaw") for name, one in described.items()} == {"gate": True, "lab": None}
    assert [name for name in described if is_openclaw({"providers": described}, name)] == ["gate"]


class ClosedChannel:
    """As execnet's, after its other side has closed it."""

    def setcallback(self, callback, endmarker):
        callback(endmarker)

    def send(self, message):
        raise OSError("cannot send to <Channel id=3 closed>")


def test_a_worker_ends_if_its_controller_has_closed_the_channel():
    """A cell that cannot be sent any more is not a broken harness."""
    config = SimpleNamespace(workerinput={INPUT: pickle.dumps((None, {})), CHANNEL: ClosedChannel()})
    cell = None

    with pytest.raises(pytest.exit.Exception, match="the session is stopping"):
        WorkerLink(config).ask("suite::P1", cell)


class OfAPlugin:
    type = "of_a_plugin"

    def check(self, reply):
        raise AssertionError("the controller judges nothing with it")


class OpenChannel:
    def __init__(self):
        self.sent = []

    def setcallback(self, callback, endmarker):
        pass

    def send(self, message):
        self.sent.append(message)


@pytest.mark.parametrize(
    ("validator", "type_sent"),
    [
        (OfAPlugin(), "python"),
        (Not(validator=OfAPlugin()), "python"),
        (AllOf(validators=(Noop(), Not(validator=OfAPlugin()))), "python"),
        (AllOf(validators=(Noop(), Noop())), "all_of"),
    ],
    ids=["itself", "in-not", "in-all-of", "ours"],
)
def test_a_plugins_validator_stays_in_its_worker(validator, type_sent):
    """The controller judges no reply with it, and none with a validator that has it as a part."""
    prompt = replace(make_prompt(OK), validator=validator)
    cell = PlannedCell(token="t", cell=Cell(prompt=prompt, target=TARGET))
    collected = Collected(cells=(cell,), divided=None, unknown_ids="")
    channel = OpenChannel()
    config = SimpleNamespace(workerinput={INPUT: pickle.dumps((None, {})), CHANNEL: channel})

    WorkerLink(config).send(collected)

    assert pickle.loads(channel.sent[0]).cells[0].cell.prompt.validator.type == type_sent
