"""Graphs of the page: limits before anything is built, hostile uploads refused, places that do not depend on who looks."""

import base64
import gzip

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.graphs.spec import examples
from netdp.studio import networks
from netdp.studio.networks import SIZES, Networks, check_size, crowd, drawn


def test_every_family_has_a_size_and_it_is_about_right():
    assert set(SIZES) == set(examples())
    for family, example in examples().items():
        graph = graphs.parse(example)
        given = [float(part.rpartition("=")[2]) for part in example.partition(":")[2].replace("x", ",").split(",")]
        n, m = SIZES[family](*given)
        assert graph.n <= n <= 2.1 * graph.n, family
        assert graph.m <= 1.3 * m <= 4 * graph.m, family
        check_size(example)


@pytest.mark.parametrize(
    "spec",
    ["complete:2000", "hypercube:16", "grid:1000x1000", "erdos_renyi:20000,0.9", "geometric:30000,0.5,seed=1",
     "regular:39000,900", "balanced_tree:9,9", "barabasi_albert:30000,400", "ring:999999999", "ring:100+rings:99999"],
)  # fmt: skip
def test_what_is_too_large_is_refused_before_it_is_built(spec, monkeypatch):
    monkeypatch.setattr(networks, "parse", lambda _: pytest.fail("it was built"))
    with pytest.raises(InvalidValue, match="the studio shows up to"):
        Networks().get(spec)


def test_an_upload_is_read_like_any_edge_list():
    store = Networks()
    found = store.upload("my friends (1).csv", b"from,to\nann,bob\nbob,ann\nbob,cy\ncy,cy\n")
    called, graph = store.get(found["graph"])
    assert called == found["called"] == "my_friends_1_.csv"
    assert (graph.n, graph.m, graph.labels) == (3, 2, ("ann", "bob", "cy"))
    assert "removed 1 self-loop and 1 repeated edge" in found["found"]
    assert "/" not in found["found"]  # no folder of this machine


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty|no edge|without"),
        (b"\x00\x01\x02\xff" * 50, "bad.csv"),
        (b"\xff\xfe" + "a,b\n".encode("utf-16-le"), "bad.csv"),
        (gzip.compress(b"a,b\n"), "compressed"),
        (b"a,b\nc\n", "2"),
        (b"<script>alert(1)</script>\n", "bad.csv"),
        (b"a,b\n" + b"c" * 5000 + b",d\n", "longer than"),
        (b"a\x07b,c\nd,e\n", "cannot be printed"),
        (b"\n".join(b"%d,%d" % (i, i + 1) for i in range(50_000)), "parties; the studio shows up to"),
    ],
    ids=["empty", "no text", "utf-16", "compressed", "one column", "a script", "a long name", "a bell", "too many"],
)
def test_hostile_uploads_are_refused_in_a_sentence(content, words):
    with pytest.raises(InvalidValue, match=words) as refusal:
        Networks().upload("bad.csv", content)
    assert "/tmp" not in str(refusal.value)
    assert len(str(refusal.value)) < 600


def test_too_many_bytes(monkeypatch):
    monkeypatch.setattr(networks, "MOST_BYTES", 10)
    with pytest.raises(InvalidValue, match="up to 10 can be uploaded"):
        Networks().upload("big.csv", b"a,b\n" * 10)


def test_a_file_name_is_only_a_name():
    found = Networks().upload("../../../etc/cron.d/x\n<b>.csv", b"a,b\nb,c\n")
    assert found["called"] == "x_b_.csv"


def test_uploads_are_forgotten_one_day():
    store = Networks()
    first = store.upload("a.csv", b"1,2\n2,3\n")["graph"]
    for _ in range(20):
        last = store.upload("b.csv", b"1,2\n2,3\n")["graph"]
    with pytest.raises(InvalidValue, match="upload the file again"):
        store.get(first)
    assert store.get(last)[1].n == 3


def test_places_and_links_are_packed():
    graph = graphs.ring(6)
    made = drawn(Networks(), "ring:6", graph)
    places = np.frombuffer(base64.b64decode(made["positions"]), "<f4").reshape(-1, 2)
    links = np.frombuffer(base64.b64decode(made["edges"]), "<i4").reshape(-1, 2)
    assert places.shape == (6, 2)
    assert links.tolist() == graph.edges().tolist()
    assert ((places >= -1e-6) & (places <= 1 + 1e-6)).all()
    many = np.frombuffer(base64.b64decode(crowd(500)["positions"]), "<f4").reshape(-1, 2)
    assert len(np.unique(many.round(4), axis=0)) == 500
