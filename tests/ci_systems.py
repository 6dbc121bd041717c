"""Parsers of CI systems, ported: each takes a log and returns the commands that its system would carry out."""

import re
from dataclasses import dataclass

# https://github.com/actions/runner: the extensions of ActionCommandManager.cs, and `stop-commands` itself.
GITHUB_COMMANDS = frozenset(
    {
        "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice",
        "remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning",
    }
)  # fmt: skip
# `char.IsWhiteSpace` of .NET, which `string.TrimStart` takes away.
_NET_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_NET_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Command:
    """A command as its system has parsed it."""

    name: str


def github_commands(log):
    """`ActionCommand.TryParseV2`, or else `TryParse`; stop commands are ignored, to find all."""
    found = (_github_v2(line) or _github_v1(line) for line in _NET_LINE_END.split(log))
    return [command for command in found if command]


def _github_v2(line):
    line = line.lstrip(_NET_BLANKS)
    end = line.find("::", 2)
    if not line.startswith("::") or end < 0:
        return None
    return _named(line[2:end])


def _github_v1(line):
    start = line.find("##[")
    end = line.find("]", start)
    return _named(line[start + 3 : end]) if 0 <= start < end else None


def _named(info):
    name = info.partition(" ")[0]
    return Command(name) if name.lower() in GITHUB_COMMANDS else None


def azure_commands(log):
    """`Command.TryParse` of the Azure Pipelines agent."""
    commands = []
    for line in _NET_LINE_END.split(log):
        start = line.find("##vso[")
        end = line.find("]", start)
        if 0 <= start < end:
            name = line[start + 6 : end].partition(" ")[0]
            if len([part for part in name.split(".") if part]) == 2:
                commands.append(Command(name))
    return commands


def gitlab_commands(log):
    """`Gitlab::Regex.build_trace_section_regex` without the end of it, a return and `ESC[0K`: finds more."""
    return [Command(name) for name in re.findall(r"section_(start|end):\d+:[a-zA-Z0-9_.-]+", log)]


def teamcity_commands(log):
    return [Command(name) for name in re.findall(r"##teamcity\[([A-Za-z][\w.-]*)\s", log)]


def all_commands(log):
    parsers = (github_commands, azure_commands, gitlab_commands, teamcity_commands)
    return [command for parse in parsers for command in parse(log)]


COMMANDS = {
    "github-stop": "::stop-commands::hidden",
    "github-mask": "::add-mask::passed",
    "github-error": "::error file=a.py,line=1,title=t::owned",
    "github-case": "::ERROR::owned",
    "github-indented": "\t \xa0\u3000::warning::owned",
    "github-v1": "##[error]owned",
    "github-v1-within": "see ##[group]owned",
    "github-v1-more": "####[add-mask]owned",
    "azure": "##vso[task.setvariable variable=a;isOutput=true]b",
    "azure-within": "see ##vso[task.complete result=Succeeded;]done",
    "gitlab-start": "section_start:1700000000:owned[collapsed=true]\r\x1b[0Khidden",
    "gitlab-end": "section_end:1700000000:step_script\r\x1b[0K",
    "teamcity": "##teamcity[buildStatus status='SUCCESS' text='owned']",
    "teamcity-within": "see ##teamcity[testFinished name='a']",
    "after-return": "a\r::error::owned",
    "after-separator": "a\u2028::error::owned",
    "second-command": "x ::error::add-mask::passed",
}
"""What a hostile reply says: a line each."""
