"""A whole study, and then a search for everything secret in all that its parties wrote for people and programs."""

import asyncio
import contextlib
import json
import sys
import urllib.request
from pathlib import Path

import pytest

from netdp.cli.peer_progress import Progress, Watchers
from netdp.peers.events import Log, RotatingFile
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, decode
from netdp.peers.metrics import Collector, Spent, shown
from netdp.peers.peer import prepare
from netdp.peers.status import Standing, lines, look

sys.path.append(str(Path(__file__).parent))

import crew
import planted

VALUES = ["37.12345678", "81.98765432", "55.55443322"]


class Run:
    """All parties of a crew in this process, each with its log, status file and metrics."""

    def __init__(self, one):
        self.one, self.peers, self.watchers, self.pages = one, [], [], []
        for u, value in enumerate(VALUES):
            one.data[f"p{u}"].write_text(f"x\n{value}\n")
            home = one.home(u)
            log = Log(RotatingFile(one.folder / f"p{u}.log"))
            watchers = Watchers(Progress(quiet=False), Standing(home), log)
            peer = prepare(home, one.path, one.data[f"p{u}"], report=watchers, record=one.record / f"p{u}.frames")
            watchers.begin(peer)
            self.peers.append(peer)
            self.watchers.append(watchers)

    async def go(self):
        with contextlib.ExitStack() as stack:
            ports = [
                stack.enter_context(shown(Collector(peer.meter, Spent(peer.store, 1e-6, "party")), "127.0.0.1", 0))
                for peer in self.peers
            ]
            tasks = [asyncio.ensure_future(peer.run()) for peer in self.peers]
            try:
                async with asyncio.timeout(120):
                    self.outcomes = await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            for peer, watchers, port in zip(self.peers, self.watchers, ports, strict=True):
                watchers.refresh(peer)
                page = await asyncio.to_thread(
                    lambda port=port: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300).read()
                )
                self.pages.append(page.decode())
                watchers.end(0, 1)
                peer.store.close()

    def secrets(self):
        """name → the shapes it could have."""
        found = {}
        for u, peer in enumerate(self.peers):
            secrets = planted.secrets_of(peer.identity)
            for v, other in enumerate(self.peers):
                if v != u:
                    secrets[f"shared with p{v}"] = peer.identity.shared(other.identity.card)
            with Store.open(self.one.home(u) / "peer.db", read_only=True) as store:
                held = store.contribution(self.one.study.hash, 1)
            secrets |= {"body": held.body[32:], "written down": held.secret, "signature": held.signature}
            for key, secret in secrets.items():
                if secret:
                    found[f"{key} of p{u}"] = planted.shapes(secret)
            found[f"numbers of p{u}"] = planted.numbers(held.secret) | planted.numbers(held.body[32:])
            found[f"value of p{u}"] = {VALUES[u], VALUES[u][:-2], VALUES[u].replace(".", "")}
        for file in self.one.record.glob("*.frames"):
            for _, frame in crew.frames(file):
                for message in decode(frame):
                    if isinstance(message, Item) and message.body:
                        name = f"{message.key} on the wire"
                        if not message.key.kind.is_signed:
                            found[name] = planted.shapes(message.body) | planted.numbers(message.body)
                        found.setdefault(f"{name}, signature", planted.shapes(message.signature or bytes(16)) - {""})
        return found


@pytest.mark.parametrize("protocol", ["masked-sum", "gossip"])
def test_no_secret_is_in_logs_metrics_status_or_on_standard_error(protocol, tmp_path, capfd):
    one = crew.Crew(tmp_path, 3, "complete:3", protocol=protocol)
    run = Run(one)
    asyncio.run(run.go())
    assert all(told["ok"] for told in run.outcomes)
    written = {"standard output": "", "standard error": ""}
    written["standard output"], written["standard error"] = capfd.readouterr()
    for u in range(3):
        written[f"log of p{u}"] = (tmp_path / f"p{u}.log").read_text()
        written[f"status of p{u}"] = (one.home(u) / "status.json").read_text()
        written[f"status of p{u} in words"] = "\n".join(lines(look(one.home(u)), one.home(u)))
        written[f"metrics of p{u}"] = run.pages[u]
    secrets = run.secrets()
    assert len(secrets) > 30
    for where, text in written.items():
        leaked = {name: hits for name, shapes in secrets.items() if (hits := planted.found_in(text, shapes))}
        assert leaked == {}, (where, leaked)
    # the search finds what is there: the same in a text that holds them
    names = ["noise secret of p0", "value of p1", "body of p2" if protocol == "masked-sum" else "written down of p2"]
    for name in names:
        for shape in secrets[name]:
            assert planted.found_in(f'{{"x":"{shape}"}}', secrets[name])
    # and what was written is worth reading
    events = [json.loads(line) for line in written["log of p0"].splitlines()]
    kinds = [event["event"] for event in events]
    assert {"starting", "listening", "linked", "status", "outcome", "spent", "stopped"} <= set(kinds)
    spent = [event for event in events if event["event"] == "spent"]
    assert all(event["contributions"] == 1 and 0 < event["epsilon"] <= 2 for event in spent)
    assert {event["study"] for event in events} == {one.study.hash.hex()[:16]}
    assert {event["party"] for event in events} == {"p0"}
    assert {event["peer"] for event in events if event["event"] == "linked"} == {"p1", "p2"}
    assert "netdp_answered 1.0" in written["metrics of p0"]
    assert 'netdp_messages_total{direction="out",kind="vote"}' in written["metrics of p0"]
    assert "netdp_ledger_rows 1.0" in written["metrics of p0"]
    assert "the answer is here (attempt 1, 3 parties)" in written["status of p0 in words"]
