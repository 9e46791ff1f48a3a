"""Run the command line in this process."""

import sys

import pytest

from netdp import cli


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process; returns exit status, output, errors."""

    def go(*words):
        monkeypatch.setattr(sys, "argv", ["netdp", *words])
        try:
            cli.main()
            status = 0
        except SystemExit as stop:
            status = int(stop.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return go
