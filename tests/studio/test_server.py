"""Who is answered, and what a browser may do with the answers."""

import json
import threading
import time

import pytest

from netdp.errors import InvalidValue
from netdp.studio.explorer import Explorer
from netdp.studio.server import HEADERS, MOST_ASKED, TOKEN, Studio, address_of, listening

testclient = pytest.importorskip("starlette.testclient", reason="tests of the server need httpx")

HOST = "127.0.0.1:8765"
STATE = {"graph": "ring:6", "protocol": "gossip", "rounds": 3, "sigma": 4.0, "observer": ["0"]}


class Clock:
    """Parties that say three things and end."""

    def first(self):
        return {"what": "up"}

    def events(self):
        yield {"moves": [1]}
        yield None
        yield {"moves": [2]}


@pytest.fixture
def ask():
    app = Studio(Explorer(), Clock()).app("secret", frozenset({HOST}))
    with testclient.TestClient(app, base_url=f"http://{HOST}", headers={TOKEN: "secret"}) as client:
        yield client


def lines(answer):
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_question_and_its_answer(ask):
    told = lines(ask.post("/api/account", json={"state": STATE}))
    assert told[-1]["answer"]["claim"] == "exact"
    assert all("progress" in line for line in told[:-1])
    assert lines(ask.post("/api/account", json={"state": STATE | {"sigma": -1}}))[-1]["error"].startswith(
        "sigma must be"
    )
    assert lines(ask.post("/api/plan", json={"state": STATE, "epsilon": "x"}))[-1]["error"].startswith("a target ε")
    assert lines(ask.post("/api/account", json={}))[-1] == {"error": "the question has no state"}
    start = ask.get("/api/start").json()
    assert start["state"]["graph"] == "hypercube:6"
    assert "gossip" in start["protocols"]


def test_an_upload_can_be_asked_about(ask):
    found = lines(ask.post("/api/upload?name=a.csv", content=b"ann,bob\nbob,cy\n"))[-1]["answer"]
    told = lines(ask.post("/api/account", json={"state": STATE | {"graph": found["graph"], "observer": ["cy"]}}))
    assert told[-1]["answer"]["observers"] == [2]
    assert "compressed" in lines(ask.post("/api/upload?name=a.gz", content=b"\x1f\x8b..."))[-1]["error"]


def test_parties_at_work(ask):
    assert lines(ask.get("/api/watch")) == [{"moves": [1]}, {"moves": [2]}, {"end": True}]


@pytest.mark.parametrize("token", ["", "wrong", "secret ", None])
def test_without_the_token_nothing_is_said(ask, token):
    headers = {TOKEN: token} if token is not None else {}
    ask.headers.pop(TOKEN)
    for path in ("/api/start", "/api/watch"):
        assert ask.get(path, headers=headers).status_code == 403
    answer = ask.post("/api/account", json={"state": STATE}, headers=headers)
    assert answer.status_code == 403
    assert "token" in answer.json()["error"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", ""])
def test_a_foreign_name_is_refused(ask, host):
    """A page whose own name is made to mean 127.0.0.1 still sends its own name."""
    for path in ("/", "/api/start"):
        assert ask.get(path, headers={"host": host}).status_code == 403


def test_other_pages_may_not_ask(ask):
    assert ask.get("/api/start", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert (
        ask.options("/api/account", headers={"origin": "http://evil.example"}).headers.get(
            "access-control-allow-origin"
        )
        is None
    )


def test_every_answer_has_the_headers(ask):
    for path in ("/", "/studio.js", "/nothing", "/api/start", "/api/banana"):
        answer = ask.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, path
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert ask.get("/studio.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "path", ["/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "/page/index.html", "/server.py", "/.git"]
)
def test_only_the_page_is_served(ask, path):
    answer = ask.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_questions_have_a_size(ask):
    assert ask.post("/api/account", content=b"x" * (MOST_ASKED + 1)).status_code == 413
    slow = (b"x" * 1024 for _ in range(MOST_ASKED // 1024 + 2))  # no length is stated
    assert ask.post("/api/account", content=slow).status_code == 413
    assert ask.post("/api/account", content=b"{nonsense").status_code == 400
    assert ask.post("/api/account", content=b"[]").status_code == 400
    assert ask.post("/api/banana", json={}).status_code == 404


def test_a_bug_is_owned_up_to_without_its_insides(ask, monkeypatch, caplog):
    def fails(self, state, progress):
        raise RuntimeError("secret path /home/ann")

    monkeypatch.setattr(Explorer, "account", fails)
    told = lines(ask.post("/api/account", json={"state": STATE}))[-1]
    assert "that is a bug" in told["error"]
    assert "ann" not in told["error"]
    assert "RuntimeError" in caplog.text


def test_an_answer_that_nobody_waits_for_is_given_up():
    """Closing the lines ends the work at its next word of progress."""
    import asyncio

    from netdp.studio.server import GivenUp, RequestQueue

    ended, began = threading.Event(), threading.Event()

    def endless(progress):
        try:
            while True:
                progress(1, 2)
                began.set()
                time.sleep(0.005)
        except GivenUp:
            ended.set()
            raise

    async def leave():
        desk = RequestQueue()
        answer = desk.lines(endless)
        assert b"progress" in await anext(answer)
        await answer.aclose()
        await asyncio.to_thread(ended.wait, 20)
        desk.close()

    asyncio.run(leave())
    assert began.is_set()
    assert ended.is_set()


def test_only_this_machine():
    with pytest.raises(InvalidValue, match="can be reached from other machines"):
        listening("0.0.0.0", 0)
    with pytest.raises(InvalidValue, match="is no address"):
        listening("studio.example", 0)
    opened = listening("127.0.0.1", 0)
    try:
        port = int(address_of(opened).rpartition(":")[2])
        with pytest.raises(InvalidValue, match=rf"cannot listen on port {port}"):
            listening("127.0.0.1", port)
        with pytest.raises(InvalidValue, match="cannot listen on port 99999"):
            listening("127.0.0.1", 99999)
    finally:
        opened.close()


def test_the_page_asks_nothing_of_other_machines():
    """No address of another machine stands in any file of the page, but names of namespaces."""
    import re

    from netdp.studio.server import PAGE

    for one in PAGE.iterdir():
        text = one.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", text), one.name
        assert "innerHTML" not in text, one.name
        assert "eval(" not in text, one.name
    page = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"\sstyle=|\son[a-z]+=|<script>", page)


def test_only_studies_that_run_can_be_attached_to(ask, tmp_path, monkeypatch):
    """A page names a process, never a folder."""
    from netdp.peers import runs as under_way

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert ask.get("/api/running").json() == []
    assert "has ended" in lines(ask.post("/api/attach", json={"pid": 1}))[-1]["error"]
    assert "has ended" in lines(ask.post("/api/attach", json={"folder": str(tmp_path)}))[-1]["error"]
    with under_way.listed(tmp_path, "waits"):
        (one,) = ask.get("/api/running").json()
        assert one["study"] == "waits"
        assert "folder" not in one
        assert "error" in lines(ask.post("/api/attach", json={"pid": one["pid"]}))[-1]  # no home lies there
