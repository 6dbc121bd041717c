"""A command on a real terminal of any width: what it wrote, what the screen shows, and a picture of that."""

import html
import os
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyte

ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[A-Z78])")
LIVE_LINE = re.compile(r"(?:\x1bD\x1bM)?\x1b7.*?\x1b8")
"""What a run draws below the progress while it runs, and removes again."""
FULL_SCREEN = re.compile(rb"\x1b\[\?1049h.*?\x1b\[\?1049l", re.DOTALL)
"""What a program drew on the screen that it left again."""
ROWS = 200
BOUND_S = 600.0
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "HOME")
_COLORS = {"red": "#c4342b", "green": "#1f7a34", "brown": "#8a6100", "blue": "#0a5cb8", "cyan": "#0b7285"}
_INK = "#1b1d20"


@dataclass(frozen=True)
class Shown:
    """The output of a command: `raw` with all codes, `rows` as the screen at the end, each character with its look."""

    status: int
    raw: str
    rows: list[list[Any]]

    @property
    def text(self):
        return "\n".join("".join(one.data for one in row).rstrip() for row in self.rows).rstrip()

    @property
    def lines(self):
        return [
            line.rstrip()
            for line in ESCAPE.sub("", LIVE_LINE.sub("", self.raw)).replace("\r", "").split("\n")
        ]

    @property
    def has_color(self):
        return bool(re.search(r"\x1b\[[0-9;]*m", self.raw))

    def picture(self, title):
        n = len(self.text.splitlines())
        rows = "\n".join("".join(_spans(row)).rstrip() for row in self.rows[:n])
        return (
            '<!doctype html><meta charset="utf-8"><style>body{margin:0;background:#fff}div{display:inline-block;'
            "border:1px solid #c9cbc7;border-radius:8px;margin:8px;overflow:hidden}p{margin:0;padding:6px 14px;"
            "background:#ececea;font:13px sans-serif;color:#444}pre{margin:0;padding:12px 14px;color:#1b1d20;"
            f'font:14px/1.35 "DejaVu Sans Mono",monospace}}</style><div><p>{html.escape(title)}</p><pre>{rows}</pre></div>'
        )


def run_on_terminal(line, folder, environ, *, columns, color):
    """Run a command line in a terminal of so many columns; without `color`, NO_COLOR is set."""
    import fcntl
    import pty
    import struct
    import termios

    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    env = {**kept, "PATH": path, "TERM": "xterm", **({} if color else {"NO_COLOR": "1"}), **environ}
    screen = pyte.Screen(columns, ROWS)
    stream = pyte.ByteStream(screen)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    process = subprocess.Popen(
        ["/bin/bash", "-c", line], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    raw, deadline = b"", time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        raw += chunk
    os.close(ours)
    stream.feed(FULL_SCREEN.sub(b"", raw))
    status = process.wait(timeout=BOUND_S)
    rows = [[screen.buffer[y][x] for x in range(columns)] for y in range(ROWS)]
    return Shown(status, raw.decode("utf-8", "replace"), rows)


def words_of(raw):
    """Return what was written as words with single blanks between them, without any codes."""
    return " ".join(ESCAPE.sub("", LIVE_LINE.sub("", raw)).split())


def _spans(row):
    for cell in row:
        text = html.escape(cell.data)
        color = _COLORS.get(cell.fg, _INK)
        if cell.fg != "default" or cell.bold:
            weight = ";font-weight:600" if cell.bold else ""
            text = f'<span style="color:{color}{weight}">{text}</span>'
        yield text
