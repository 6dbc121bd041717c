"""The shell programs of a world that change its files."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import absolute, is_inside, place_of
from pytest_openclaw.tools.world.shell_parts import Complaint, options_of
from pytest_openclaw.tools.world.workspace import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Program, Shell


def _mkdir(shell: Shell, words: Sequence[str], _: str) -> str:
    options, paths = options_of("mkdir", words, "pv")
    for path in paths:
        place = shell.target("mkdir", path)
        if shell.workspace.is_folder(place) and "p" not in options:
            raise Complaint(f"mkdir: {path}: File exists")
        try:
            shell.workspace.make_folder(place)
        except ToolError as error:
            raise Complaint(f"mkdir: {error}") from None
    return ""


def _touch(shell: Shell, words: Sequence[str], _: str) -> str:
    for path in words:
        place = shell.target("touch", path)
        if shell.workspace.text(place) is None and not shell.workspace.is_folder(place):
            shell.write("touch", place, "")
    return ""


def _rm(shell: Shell, words: Sequence[str], _: str) -> str:
    options, paths = options_of("rm", words, "rRfv")
    for path in paths:
        place = shell.place("rm", path)
        workspace = shell.workspace
        if workspace.text(place) is not None:
            workspace.remove(place)
        elif workspace.is_folder(place):
            if not options & {"r", "R"}:
                raise Complaint(f"rm: {path}: is a directory")
            for one in [*workspace.below(place), place]:
                workspace.remove(one)
        elif "f" not in options:
            raise Complaint(f"rm: {path}: No such file or directory")
    return ""


def _cp(shell: Shell, words: Sequence[str], _: str) -> str:
    _options, paths = options_of("cp", words, "fpv")
    for text, _source, target in _pairs(shell, "cp", paths):
        shell.write("cp", target, text)
    return ""


def _mv(shell: Shell, words: Sequence[str], _: str) -> str:
    _options, paths = options_of("mv", words, "fv")
    for text, source, target in _pairs(shell, "mv", paths):
        shell.write("mv", target, text)
        if source != target:
            shell.workspace.remove(source)
    return ""


def _pairs(shell: Shell, program: str, paths: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return text, place and new place of each file that goes somewhere."""
    if len(paths) < 2:
        raise Complaint(f"{program}: missing file operand")
    *sources, last = paths
    target = shell.place(program, last)
    into = shell.workspace.is_folder(target)
    if not is_inside(target) or (len(sources) > 1 and not into):
        raise Complaint(
            f"{program}: {last}: Permission denied" if into else f"{program}: {last}: No such directory"
        )
    found = []
    for path in sources:
        text = shell.read(program, path)
        name = posixpath.basename(path.rstrip("/"))
        to = place_of(name, absolute(target)) if into else target
        found.append((text, shell.place(program, path), to))
    return found


CHANGERS: Mapping[str, Program] = {
    "cp": _cp,
    "mkdir": _mkdir,
    "mv": _mv,
    "rm": _rm,
    "touch": _touch,
}
