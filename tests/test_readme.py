"""The commands in the README print what the README says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.S)


def test_there_are_blocks():
    assert {command.split()[0] for command, _ in BLOCKS} == {"make", "netdp"}


@pytest.mark.parametrize(("command", "printed"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_prints_what_it_says(command, printed, tmp_path):
    words = shlex.split(command)
    run = [sys.executable, str(ROOT / "examples" / "demo.py")] if words[0] == "make" else [sys.executable, "-m", *words]
    environment = {**os.environ, "COLUMNS": "80", "NETDP_DEMO": "demo.html"}
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=False)
    assert done.returncode == (2 if done.stderr else 0)
    said = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    assert said == [line.rstrip() for line in printed.splitlines()]
