"""The provider around OpenClaw, real or fake."""

import shlex
import sys
from pathlib import Path

from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers import apis

KEY = "sk-not-to-be-seen"


def fake_command(seen, mode="answer"):
    return shlex.join([sys.executable, str(Path(__file__).with_name("fake_openclaw.py")), mode, str(seen)])


def agent(command, url, **environ):
    own = {"OPENCLAW_AGENT_COMMAND": command, "OPENCLAW_AGENT_BASE_URL": url, "OPENCLAW_AGENT_API_KEY": KEY}
    return OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=own | environ))


def ask(provider, **request):
    return apis.ask(provider, **{"model": "local/tiny", **request})
