"""A server for whole sessions: it treats each model, or each prompt, as its script says, and keeps who asked when."""

from __future__ import annotations

import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.providers.servers.apis import APIS, CHAT, Api
from tests.providers.servers.misbehaving import MisbehavingServer, Pause, Request, Script

if TYPE_CHECKING:
    import pytest

Behaviour = Callable[[Api], Script | Sequence[Script]]
"""What a model does in an API's words; of several scripts the last one stands."""


@dataclass(frozen=True)
class Asked:
    """A request that asked a model, by the wall clock of its arrival."""

    api: Api
    model: str
    prompt: str
    at_s: float
    headers: Mapping[str, str]

    @property
    def target(self) -> str:
        return f"{self.api.kind.name}/{self.model}"


class ModelServer(MisbehavingServer):
    """Serves both APIs at one base URL; everything that is no question to a model is answered by 404.

    Attributes:
        behaviours: by prompt, else by model; one with several scripts goes through them for each cell.
        asked: the questions in order of arrival, without warm-ups.
        keeps: whether a connection stays for the next request. A request that is lost on a kept connection
            is sent again over a new one within the same attempt, so counts of resets need new ones.
        warm_ups: targets that were asked for one token.
        warm_up: how a warm-up is answered.
        most_paused_at_once: scripts that were in a `Pause` together; what comes after it holds the client,
            so that requests one after the other never overlap here.
    """

    def __init__(self, behaviours: Mapping[str, Behaviour], *, keeps: bool = True) -> None:
        super().__init__()
        self.keeps = keeps
        self.behaviours = behaviours
        self.asked: list[Asked] = []
        self.warm_ups: list[str] = []
        self.warm_up = Script.answer(CHAT.whole("Hi"))
        self.most_paused_at_once = 0
        self._paused_now = 0
        self._left: dict[str, list[Script]] = {}
        self._mutex = threading.Lock()
        self.on("*", self._script)

    def times(self, model: str, api: Api = CHAT) -> int:
        """How often a model was asked."""
        return sum((asked.api, asked.model) == (api, model) for asked in self.asked)

    def _script(self, request: Request) -> Script:
        api = _api_of(request)
        if api is None:
            return Script.answer({"error": {"message": "no such route"}}, status=404)
        body = request.json
        asked = Asked(api, body["model"], _prompt_of(body), time.time(), request.headers)
        with self._mutex:
            if body.get("max_tokens") == 1:
                self.warm_ups.append(asked.target)
                return self.warm_up
            self.asked.append(asked)
            key = f"{asked.target} {asked.prompt}"
            if key not in self._left:
                behave = self.behaviours.get(asked.prompt) or self.behaviours[asked.model]
                scripts = behave(api)
                self._left[key] = [scripts] if isinstance(scripts, Script) else list(scripts)
            left = self._left[key]
            return left.pop(0) if len(left) > 1 else left[0]

    def _answer(self, connection: Any, request: Request) -> bool:
        return super()._answer(connection, request) and self.keeps

    def _do(self, connection: Any, step: Any) -> bool:
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


def _api_of(request: Request) -> Api | None:
    if request.method != "POST":
        return None
    return next((api for api in APIS if request.path.endswith(api.kind.path)), None)


def _prompt_of(body: Mapping[str, Any]) -> str:
    return str(body["input"] if "input" in body else body["messages"][-1]["content"])


def point_at(monkeypatch: pytest.MonkeyPatch, server: MisbehavingServer, **environ: str) -> None:
    """Let both providers ask this server, with a dummy key."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    addresses = {"OLLAMA_OPENAI_BASE": server.url, "OPENAI_BASE_URL": server.url}
    for name, value in {**addresses, "OPENAI_API_KEY": "dummy-key", **environ}.items():
        monkeypatch.setenv(name, value)


def outcomes_by_cell(junit: Any) -> dict[str, str]:
    """What pytest's own report says of each cell: passed, failed, skipped or error."""
    words = {"failure": "failed", "error": "error", "skipped": "skipped"}
    found: dict[str, str] = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        tags = [words[child.tag] for child in case if child.tag in words]
        assert len(tags) <= 1, "a cell ends in one way"
        found[case.attrib["name"]] = tags[0] if tags else "passed"
    return found
