"""The studio, for tests: its server in this process, and the command line beside it."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest

pytest.importorskip("starlette", reason="the studio is an extra: pip install 'netdp[studio]'")


@pytest.fixture
def netdp_json():
    """`netdp … --json`, in this process: what it prints."""

    def run(*words):
        from netdp.cli import app

        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            app([*words, "--json"], standalone_mode=False)
        return json.loads(out.getvalue())

    return run
