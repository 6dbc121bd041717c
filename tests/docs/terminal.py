"""A reader's terminal: a folder of its own, an emptied environment, 80 columns."""

import difflib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import NO_OTHER_PLUGINS
from tests.docs.pages import File, cut

BOUND_S = 600.0
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_MASKS = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    # What the small model says is the same here and there only as long as it is short.
    (re.compile(r"^  reply  .*\n(?: {10}.*\n|\n)*", re.MULTILINE), "reply\n"),
    # Printed only where no remote has the commit of the plugin's clone.
    (re.compile(r"^ +pip wheel .*# for CI.*\n?", re.MULTILINE), ""),
    (re.compile(r"(?:;\s+)?(?:latency|TTFT)\s+[\d.]+x\s+\((?:faster|slower)\)"), ""),
    (re.compile(r"from \S+, in the run"), "from HOST, in the run"),
    (re.compile(r"^(platform|plugins:) .*", re.MULTILINE), r"\1"),
    (re.compile(r"\b\d{8}_\d{6}(?:_\d+)?\b"), "RUN"),
    (re.compile(r"(?<![\w.])/[\w./-]+"), "PATH"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?"), "DAY"),
    (re.compile(r"(?<= in )[\d.]+s(?: \([\d:]+\))?"), "N"),
    (re.compile(r"(?<![\w.-])[\d.]+(?: ms)?-(?=\d)"), ""),  # the lower end of an interval
    # Times, shares, ratios, speeds and all fractions; a count stays as it is.
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|min|h|%|x|tok/s)(?![\w.])|\b\d+\.\d+"), "N"),
    (re.compile(r"(N\??)\s+\d+\??(?=\s+(?:–|[123]))"), r"\1 N"),  # tokens per second, in front of the tier
    (re.compile(r"(?<!\S)[=_]+(?!\S)|[=_─-]{3,}"), " "),
]


@dataclass(frozen=True)
class Terminal:
    """Where a page's reader sits."""

    folder: Path

    def write(self, file):
        path = self.folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, "utf-8")

    def run(self, line, stdin=""):
        environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", "")])
        environ |= {
            "PATH": path,
            "HOME": str(self.folder),
            "COLUMNS": "80",
            "PYTEST_ADDOPTS": NO_OTHER_PLUGINS,
        }
        return subprocess.run(
            line,
            shell=True,
            executable="/bin/bash",
            cwd=self.folder,
            env=environ,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=BOUND_S,
        )


def masked(lines):
    """Return the words of an output, without what is another one each time: figures, run ids, paths, spacing."""
    text = "\n".join([*lines, ""])
    for pattern, put in _MASKS:
        text = pattern.sub(put, text)
    return text.split()


def follow(blocks, terminal):
    """Do what a page says, and return how many outputs were compared."""
    n_compared = 0
    for block in blocks:
        if isinstance(block, File):
            terminal.write(block)
        elif not block.elsewhere:
            done = terminal.run(block.line)
            if block.shown:
                _compare(block, cut(done.stdout, block.begins_at))
                n_compared += 1
            else:
                assert done.returncode == 0, f"$ {block.line}\n{done.stdout}"
    return n_compared


def _compare(command, came):
    shown = [line.removeprefix(command.indent) for line in command.shown]
    if masked(shown) != masked(came):
        lines = difflib.unified_diff(shown, came, "on the page", "in the terminal", lineterm="")
        raise AssertionError("\n".join([f"$ {command.line}", *lines]))
