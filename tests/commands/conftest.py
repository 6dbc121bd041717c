"""Commands in this process, in a project of their own."""

import json

import pytest

from pytest_openclaw.cli import main


class CommandLine:
    def __init__(self, capsys):
        self._capsys = capsys

    def __call__(self, *words, status=0):
        assert main([*words]) == status
        return self._capsys.readouterr()

    def json(self, *words, status=0):
        return json.loads(self(*words, "--json", status=status).out)

    def refused(self, *words):
        shown = self(*words, status=4)
        assert (shown.out, shown.err.count("\n")) == ("", 1)
        return shown.err.partition(f" {words[0]}: ")[2].rstrip("\n")

    def wrong_usage(self, *words):
        with pytest.raises(SystemExit, match="2"):
            main([*words])
        return self._capsys.readouterr().err


@pytest.fixture
def command(capsys):
    return CommandLine(capsys)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
