"""`netdp studio` as a process: an address with a token, on this machine only."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

pytest.importorskip("starlette", reason="the studio is an extra: pip install 'netdp[studio]'")


@pytest.fixture
def started():
    """A studio, its address and its token."""
    command = [sys.executable, "-m", "netdp", "studio", "--json", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address, _, token = json.loads(process.stdout.readline())["address"].partition("/#token=")
        yield process, address, token
    finally:
        process.kill()
        process.communicate()


def get(address, path, token=None):
    asked = urllib.request.Request(address + path, headers={} if token is None else {"x-netdp-token": token})
    with urllib.request.urlopen(asked, timeout=300) as answer:
        return answer.read().decode()


def test_it_answers_who_has_the_token_and_ends_when_told(started):
    process, address, token = started
    assert address.startswith("http://127.0.0.1:")
    assert len(token) >= 24
    assert "<title>netdp studio</title>" in get(address, "/")
    assert "gossip" in json.loads(get(address, "/api/start", token))["protocols"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(address, "/api/start")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (out, token in err) == ("", False)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.toml"], "nothing.toml: cannot be read"),
        (["--watch", "nowhere"], "nowhere"),
        (["--host", "0.0.0.0"], "can be reached from other machines"),
        (["--port", "70000"], "cannot listen on port 70000"),
    ],
)
def test_nonsense_is_refused_in_one_line(run, words, message):
    status, out, err = run("studio", "--no-browser", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
