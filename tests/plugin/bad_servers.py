"""A server for whole sessions: it answers each model, or each prompt, by a script, and logs its requests."""

import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass

from tests.providers.servers.apis import APIS, CHAT, Api, model_of, prompt_of
from tests.providers.servers.misbehaving import MisbehavingServer, Pause, Script


@dataclass(frozen=True)
class Asked:
    """A request to a model, with the wall-clock time of its arrival."""

    api: Api
    model: str
    prompt: str
    at_s: float
    headers: Mapping[str, str]

    @property
    def target(self):
        return f"{self.api.kind.name}/{self.model}"


class ModelServer(MisbehavingServer):
    """Serves all APIs at one base URL; every request that is not for a model is answered by 404.

    Attributes:
        behaviors: by prompt, else by model: the scripts of an API, used one after the other for each cell.
        asked: the requests in order of arrival, without warm-ups.
        keeps: whether a connection stays open for the next request. A request lost on a kept connection
            is repeated over a new one within the same attempt, so counts of resets need new ones.
        warm_ups: targets that received a request for one token.
        warm_up: the answer to a warm-up.
        most_paused_at_once: the most scripts that were in a `Pause` together; the client waits for the bytes
            after it, so consecutive requests never overlap here.
    """

    def __init__(self, behaviors, *, keeps=True):
        super().__init__()
        self.keeps = keeps
        self.behaviors = behaviors
        self.asked = []
        self.warm_ups = []
        self.warm_up = Script.answer(CHAT.whole("Hi"))
        self.most_paused_at_once = 0
        self._paused_now = 0
        self._left = {}
        self._mutex = threading.Lock()
        self.on("*", self._script)

    def times(self, model, api=CHAT):
        return sum((asked.api, asked.model) == (api, model) for asked in self.asked)

    def _script(self, request):
        api = _api_of(request)
        if api is None:
            return Script.answer({"error": {"message": "no such route"}}, status=404)
        body = request.json
        asked = Asked(api, model_of(request), prompt_of(body), time.time(), request.headers)
        with self._mutex:
            if body.get("max_tokens") == 1:
                self.warm_ups.append(asked.target)
                return self.warm_up
            self.asked.append(asked)
            key = f"{asked.target} {asked.prompt}"
            if key not in self._left:
                behave = self.behaviors.get(asked.prompt) or self.behaviors[asked.model]
                scripts = behave(api)
                self._left[key] = [scripts] if isinstance(scripts, Script) else list(scripts)
            left = self._left[key]
            return left.pop(0) if len(left) > 1 else left[0]

    def _answer(self, connection, request):
        return super()._answer(connection, request) and self.keeps

    def _do(self, connection, step):
        if not isinstance(step, Pause):
            return super()._do(connection, step)
        with self._mutex:
            self._paused_now += 1
            self.most_paused_at_once = max(self.most_paused_at_once, self._paused_now)
        try:
            return super()._do(connection, step)
        finally:
            with self._mutex:
                self._paused_now -= 1


def _api_of(request):
    if request.method != "POST":
        return None
    return next((api for api in APIS if api.answers(request.path)), None)


def point_at(monkeypatch, server, **environ):
    addresses = {api.base_env: server.url for api in APIS}
    keys = {api.key_env: "dummy-key" for api in APIS if api is not CHAT}
    for name, value in {**addresses, **keys, **environ}.items():
        monkeypatch.setenv(name, value)


def outcomes_by_cell(junit):
    """The outcome of each cell in pytest's own report: passed, failed, skipped or error."""
    words = {"failure": "failed", "error": "error", "skipped": "skipped"}
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        tags = [words[child.tag] for child in case if child.tag in words]
        assert len(tags) <= 1, "a cell ends in one way"
        found[case.attrib["name"]] = tags[0] if tags else "passed"
    return found
