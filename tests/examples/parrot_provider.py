"""A provider: `pytest benchmarks/ --openclaw-models=parrot/any` asks it."""

from pytest_openclaw import Provider, Reply, Request


class Parrot(Provider):
    """Repeats the prompt."""

    name = "parrot"

    async def ask(self, request: Request) -> Reply:
        """Return one reply, or raise `CallFailed`."""
        return Reply(text=request.prompt)


def pytest_openclaw_providers() -> list[type[Provider]]:
    """Register the provider."""
    return [Parrot]
