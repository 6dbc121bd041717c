"""The shell programs of a world that change its files."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import absolute, is_inside, place_of
from pytest_openclaw.tools.world.workspace import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Process, Program


def _mkdir(process: Process) -> str:
    options, paths = process.options("pv", "m", {"parents": "p", "verbose": "v"})
    if not paths:
        raise process.fail("missing operand")
    for path in paths:
        place = process.target(path)
        if "p" not in options and process.workspace.is_there(place):
            process.complain(f"cannot create directory '{path}': File exists")
        elif "p" not in options and not process.workspace.is_folder(posixpath.dirname(place)):
            process.complain(f"cannot create directory '{path}': No such file or directory")
        else:
            try:
                process.workspace.make_folder(place)
            except ToolError as error:
                process.complain(str(error))
    return ""


def _touch(process: Process) -> str:
    _, paths = process.options("acm", "dt")
    for path in paths:
        place = process.target(path)
        if not process.workspace.is_there(place):
            if not process.workspace.is_folder(posixpath.dirname(place)):
                process.complain(f"cannot touch '{path}': No such file or directory")
            else:
                process.write(place, "")
    return ""


def _tee(process: Process) -> str:
    options, paths = process.options("ai", "", {"append": "a"})
    text = process.streams.stdin.take()
    for path in paths:
        place = process.target(path)
        if not process.workspace.is_folder(posixpath.dirname(place)):
            process.complain(f"{path}: No such file or directory")
            continue
        before = process.workspace.text(place) or "" if "a" in options else ""
        process.write(place, before + text)
    return text


def _rm(process: Process) -> str:
    options, paths = process.options("rRfvid", "", {"recursive": "r", "force": "f"})
    if not paths and "f" not in options:
        raise process.fail("missing operand")
    for path in paths:
        place = process.place(path)
        workspace = process.workspace
        if workspace.text(place) is not None:
            workspace.remove(place)
        elif workspace.is_folder(place):
            if posixpath.basename(path.rstrip("/")) in (".", ".."):
                process.complain(f"refusing to remove '.' or '..' directory: skipping '{path}'")
            elif not options.keys() & {"r", "R"}:
                process.complain(f"cannot remove '{path}': Is a directory")
            else:
                for one in [*workspace.below(place), place]:
                    workspace.remove(one)
        elif "f" not in options:
            process.complain(f"cannot remove '{path}': No such file or directory")
    return ""


def _rmdir(process: Process) -> str:
    _, paths = process.options("v")
    for path in paths:
        place = process.target(path)
        if not process.workspace.is_folder(place):
            why = "No such file or directory" if process.workspace.text(place) is None else "Not a directory"
            process.complain(f"failed to remove '{path}': {why}")
        elif process.workspace.below(place):
            process.complain(f"failed to remove '{path}': Directory not empty")
        else:
            process.workspace.remove(place)
    return ""


def _cp(process: Process) -> str:
    options, paths = process.options("fpvrRanu", "", {"recursive": "r", "archive": "a"})
    recursive = bool(options.keys() & {"r", "R", "a"})
    for path, source, target in _pairs(process, paths):
        if process.workspace.is_folder(source) and not recursive:
            process.complain(f"-r not specified; omitting directory '{path}'")
        elif "n" not in options or process.workspace.text(target) is None:
            _copy(process, path, source, target)
    return ""


def _mv(process: Process) -> str:
    options, paths = process.options("fvnu")
    for path, source, target in _pairs(process, paths):
        if not is_inside(source):
            raise process.fail(f"cannot remove '{path}': Permission denied")
        if "n" in options and process.workspace.text(target) is not None:
            continue
        if _copy(process, path, source, target):
            for one in [*process.workspace.below(source), source]:
                process.workspace.remove(one)
    return ""


def _copy(process: Process, path: str, source: str, target: str) -> bool:
    """Copy a file, or a folder with all that is in it; returns whether it could be done."""
    workspace = process.workspace
    is_folder = workspace.is_folder(source)
    if source == target:
        process.complain(f"'{path}' and '{path}' are the same file")
    elif is_folder and absolute(target).startswith(f"{absolute(source)}/"):
        process.complain(f"cannot copy a directory, '{path}', into itself, '{absolute(target)}'")
    elif is_folder and workspace.text(target) is not None:
        process.complain(f"cannot overwrite non-directory with directory '{path}'")
    elif not is_folder and workspace.is_folder(target):
        process.complain(f"cannot overwrite directory with non-directory '{path}'")
    elif not is_folder:
        process.write(target, workspace.files[source])
        return True
    else:
        below = workspace.below(source)
        workspace.work.spend(10 * len(below))
        for one in [source, *below]:
            to = place_of(posixpath.relpath(absolute(one), absolute(source)), absolute(target))
            text = workspace.text(one)
            if text is not None:
                process.write(to, text)
            elif not workspace.is_folder(to):
                workspace.make_folder(to)
        return True
    return False


def _pairs(process: Process, paths: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return path, place and new place of each file or folder that goes somewhere."""
    if len(paths) < 2:
        raise process.fail("missing file operand")
    *sources, last = paths
    target = process.place(last)
    into = process.workspace.is_folder(target)
    if not is_inside(target):
        raise process.fail(f"{last}: Permission denied")
    if not into and (len(sources) > 1 or last.endswith("/")):
        raise process.fail(f"target '{last}': No such file or directory")
    if not into and not process.workspace.is_folder(posixpath.dirname(target)):
        raise process.fail(f"cannot create regular file '{last}': No such file or directory")
    found = []
    for path in sources:
        place = process.place(path)
        if not process.workspace.is_there(place):
            process.complain(f"cannot stat '{path}': No such file or directory")
            continue
        name = posixpath.basename(absolute(place))
        found.append((path, place, place_of(name, absolute(target)) if into else target))
    return found


def _chmod(process: Process) -> str:
    for path in [word for word in process.words if not word.startswith("-")][1:]:
        place = process.place(path)
        if not process.workspace.is_there(place):
            process.complain(f"cannot access '{path}': No such file or directory")
    return ""


CHANGERS: Mapping[str, Program] = {
    "chmod": _chmod,
    "cp": _cp,
    "mkdir": _mkdir,
    "mv": _mv,
    "rm": _rm,
    "rmdir": _rmdir,
    "tee": _tee,
    "touch": _touch,
}
