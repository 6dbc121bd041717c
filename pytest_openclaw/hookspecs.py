"""The hooks that pytest-openclaw offers; the built-ins come in through the same doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.protocols import Provider, Validator


@pytest.hookspec
def pytest_openclaw_providers() -> Sequence[type[Provider]]:
    """Return further ways of reaching models, in the root `conftest.py` or an installed plugin.

    ```python
    class Parrot(Provider):
        name = "parrot"

        async def ask(self, request):
            return Reply(text=request.prompt)


    def pytest_openclaw_providers():
        return [Parrot]
    ```

    Then `--openclaw-models=parrot/any` asks it. A name claimed twice is an error that names both. With
    `takes_tools = True` it is asked prompts with tools too, and sends `request.tools` and `request.history`.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec
def pytest_openclaw_validators() -> Sequence[type[Validator]]:
    """Return further rules for replies, in the root `conftest.py` or an installed plugin.

    ```python
    @dataclass(frozen=True)
    class MentionsTicket:
        type: ClassVar[str] = "mentions_ticket"
        ticket: str

        def check(self, reply):
            found = self.ticket in reply.text
            return Verdict(passed=found, violation=None if found else f"{self.ticket} is not mentioned")


    def pytest_openclaw_validators():
        return [MentionsTicket]
    ```

    Then a suite may say `validator = { type = "mentions_ticket", ticket = "OC-12" }`.
    """
    raise AssertionError("a specification is never called")
