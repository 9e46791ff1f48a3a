"""What Prometheus is shown: the counts, and nothing of anybody's."""

import math
import re
import urllib.request
from collections import Counter

import pytest

from netdp.errors import InvalidValue, Refused
from netdp.peers.events import CODES, Sentence
from netdp.peers.exchange import Reason
from netdp.peers.messages import Done, Hello, Item, ItemKind, Key
from netdp.peers.meter import Meter
from netdp.peers.metrics import Collector, Spent, shown, where


def scraped(collector):
    with shown(collector, "127.0.0.1", 0) as port:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300).read().decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}


def test_counts_by_direction_kind_and_reason():
    meter = Meter(100.0)
    meter.frame("out", 500, [Hello(b"s" * 32, "1"), Item(Key(ItemKind.CONTRIBUTION, 1, 0), b"secret body")])
    meter.frame("in", 70, [Done(1, b"digest")])
    for text in (Sentence.OTHER_STUDY(theirs="x", ours="y"), "17.25 is the value of row 3"):
        meter.event({"event": "refused", "peer": "birch", "reason": text}, 103.0)
    meter.event({"event": "linked", "peer": "birch"}, 104.0)
    meter.event({"event": "lost", "peer": "birch", "reason": Sentence.REPLACED()}, 105.0)
    rejections = Counter({Reason.SIGNATURE: 4})
    found = scraped(Collector(meter, rejections=rejections, starts=lambda: 3, now=lambda: 110.0))
    assert found['netdp_frame_bytes_total{direction="out"}'] == 500
    assert found['netdp_messages_total{direction="out",kind="contribution"}'] == 1
    assert found['netdp_messages_total{direction="in",kind="done"}'] == 1
    assert found['netdp_rejections_total{reason="signature"}'] == 4
    assert found['netdp_refusals_total{reason="other-study"}'] == 1
    assert found['netdp_refusals_total{reason="other"}'] == 1
    assert found['netdp_links_lost_total{reason="replaced"}'] == 1
    assert found["netdp_seconds_since_progress"] == 6.0
    assert found["netdp_starts_total"] == 3
    assert found["netdp_answered"] == -1
    assert found["netdp_resident_bytes"] > 1e6
    text = " ".join(found)
    assert "birch" not in text
    assert "17.25" not in text
    assert set(re.findall('reason="([^"]*)"', text)) <= CODES


def test_cheats_and_an_answer_that_is_withheld():
    """Who is proved to have signed two things is counted, not named; a withheld answer is a count of its own."""
    meter = Meter(0.0)
    found = scraped(Collector(meter, cheats=lambda: 2))
    assert (found["netdp_proven_cheats"], found["netdp_withheld"]) == (2, 0)
    meter.event({"event": "outcome", "ok": False, "withheld": True}, 1.0)
    found = scraped(Collector(meter))
    assert (found["netdp_proven_cheats"], found["netdp_withheld"], found["netdp_answered"]) == (0, 1, 0)


def test_progress_is_whatever_changes():
    meter, same = Meter(0.0), {"event": "status", "attempt": 1, "links": 2, "votes": 2, "contributions": 0}
    meter.event(same, 1.0)
    meter.event(same, 5.0)
    assert meter.idle(6.0) == 5.0
    meter.event(same | {"votes": 3}, 7.0)
    assert (meter.idle(8.0), meter.votes) == (1.0, 3)
    meter.event({"event": "outcome", "ok": False}, 9.0)
    assert (meter.idle(9.5), meter.outcome) == (0.5, False)


def test_what_the_ledger_says_is_computed_once_per_row():
    class Ledger:
        asked = 0
        rows = ()

        def entries(self):
            self.asked += 1
            return list(self.rows)

    ledger = Ledger()
    spent = Spent(ledger, 1e-6, "party")
    assert spent() == (0, {1: 0.0, 2: 0.0, 3: 0.0})
    from netdp.peers.ledger.entries import Entry
    from netdp.peers.ledger.entries import spent as spent_on

    loss = {"kind": "masked-sum", "share": 10**6, "distance": 300, "dimension": 1}
    ledger.rows = [Entry("2026-01-01", 64 * "a", "s", 1, ("ann", "bob", "cy"), "ann", "record", 1e-6, loss)]
    found = scraped(Collector(Meter(0.0), spent))
    assert found["netdp_ledger_rows"] == 1
    assert math.isinf(found['netdp_ledger_epsilon{against="1",unit="party"}'])
    one = Spent(ledger, 1e-6, "record")()[1][1]
    assert one == spent_on(ledger.rows, 1, "record", 1e-6).epsilon > 0


def test_others_do_not_see_it_unless_told():
    assert where("127.7.7.7:0") == ("127.7.7.7", 0)
    assert where("localhost:9101") == ("127.0.0.1", 9101)
    assert where("192.0.2.7:9101", anywhere=True) == ("192.0.2.7", 9101)
    for address in ("192.0.2.7:9101", "[::]:9101", "0.0.0.0:1"):
        with pytest.raises(Refused, match="other machines"):
            where(address)
    for address in ("9101", "127.0.0.1:http", "127.0.0.1:70000", "example.org:9101", ":9101"):
        with pytest.raises(InvalidValue, match="such as 127"):
            where(address)


def test_a_port_in_use_is_a_refusal():
    collector = Collector(Meter(0.0))
    with shown(collector, "127.0.0.1", 0) as port:
        again = shown(collector, "127.0.0.1", port)
        with pytest.raises(Refused, match="choose another --metrics"):
            again.__enter__()
