"""Other harnesses, if an environment with them is given; none is installed for this."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.performance import processes
from tests.performance.runs import Run
from tests.performance.serving import ROOT, MockServer

#: package → the program of `peers/` that uses it
PEERS = {"inspect-ai": "with_inspect_ai.py", "lm-eval": "with_lm_eval.py"}


@dataclass(frozen=True)
class PeerRunner:
    """A harness that asks the same items with its own client, checks the replies and writes its own log.

    They do not stream, and report no TTFT.

    Args:
        package: of `PEERS`.
        version: of the package.
        python: of the environment that has it.
    """

    package: str
    version: str
    python: str
    folder: Path
    server: MockServer

    @property
    def name(self) -> str:
        """Its row in the table."""
        return f"{self.package} {self.version}"

    def run(self, n: int, concurrency: int, behavior: str = "") -> Run:
        """Run it; see `Runner.run`."""
        base, folder = self.server.base(behavior), self.folder / self.package
        folder.mkdir(exist_ok=True)
        program = ROOT / "tests" / "performance" / "peers" / PEERS[self.package]
        command = [self.python, str(program), base, str(n), str(concurrency), str(folder)]
        cost = processes.run(command, folder, processes.environment(folder))
        log = self.server.log(base)
        log.require(n)
        return Run(cost=cost, log=log, times={})


def find_peers(python: str, folder: Path, server: MockServer) -> list[PeerRunner]:
    """Return the harnesses that an environment has."""
    found = []
    for package in PEERS:
        question = f"from importlib.metadata import version; print(version({package!r}))"
        done = subprocess.run([python, "-c", question], capture_output=True, text=True)
        if done.returncode == 0:
            found.append(PeerRunner(package, done.stdout.strip(), python, folder, server))
    return found
