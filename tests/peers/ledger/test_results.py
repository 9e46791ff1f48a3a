"""Long results are written as bytes, short ones as text, old ones are read; all to the same values."""

import json
import math
import sqlite3
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdp.errors import NetdpError
from netdp.peers.ledger.entries import canonical
from netdp.peers.ledger.results import LONG, MARK, read, written
from netdp.peers.ledger.store import Store

STUDY = bytes(range(32))
NUMBERS = [math.sin(k) * 10.0 ** (k % 600 - 300) for k in range(LONG)] + [-0.0, 5e-324, 1.7976931348623157e308]
LONG_ONE = {
    "ok": True,
    "answer": {"kind": "histogram", "counts": NUMBERS, "numbers": None},
    "total": None,
    "roster": ["ö"],
}


def kept(path):
    """What really stands in the file."""
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT result FROM results").fetchall()[0][0]
    finally:
        database.close()


def bits(values):
    return [struct.pack("<d", value) for value in values]


def test_a_short_result_stays_text_that_people_can_read(tmp_path):
    short = {"ok": True, "answer": {"value": 1.5}, "counts": [0.5] * (LONG - 1)}
    with Store.open(tmp_path / "peer.db") as store:
        store.set_result(STUDY, short)
        assert store.result(STUDY) == short
    assert kept(tmp_path / "peer.db") == canonical(short)


def test_a_long_result_is_bytes_and_comes_back_to_the_last_bit(tmp_path):
    with Store.open(tmp_path / "peer.db") as store:
        store.set_result(STUDY, LONG_ONE)
    with Store.open(tmp_path / "peer.db", read_only=True) as store:
        found = store.result(STUDY)
        assert store.verify().rows == 0
    assert found == LONG_ONE == json.loads(canonical(LONG_ONE))
    assert bits(found["answer"]["counts"]) == bits(NUMBERS)  # −0.0 and 0.0 are equal
    body = kept(tmp_path / "peer.db")
    assert body.startswith(MARK)
    assert len(body) < 8 * len(NUMBERS) + 300


def test_a_result_that_an_older_version_wrote_is_read_and_rewritten(tmp_path):
    path = tmp_path / "peer.db"
    Store.open(path).close()
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("INSERT INTO results VALUES (?, ?)", (STUDY, canonical(LONG_ONE)))
    database.close()
    with Store.open(path) as store:
        found = store.result(STUDY)
        assert found == LONG_ONE
        store.set_result(STUDY, found | {"evidence": []})
        assert store.result(STUDY) == LONG_ONE | {"evidence": []}
    assert isinstance(kept(path), bytes)


@pytest.mark.parametrize("odd", [math.nan, math.inf, 1, True, None, "1.0"])
def test_only_finite_numbers_are_taken_out(odd):
    """Whole numbers stay whole; what JSON refuses is refused, however long the list is."""
    result = {"counts": [0.5] * LONG + [odd]}
    if isinstance(odd, float):
        with pytest.raises(ValueError, match="not JSON compliant"):
            written(result)
        return
    assert written(result) == canonical(result)
    assert [type(value) for value in read(written(result))["counts"]][-1] is type(odd)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(result=st.dictionaries(st.text(), JSON, max_size=4), path=st.lists(st.text(), min_size=1, max_size=3))
def test_any_result_is_read_as_its_json_is(result, path):
    """Whatever the keys are: also those that the format itself uses."""
    place = result
    for key in path[:-1]:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            return
    place[path[-1]] = [0.1] * LONG
    assert isinstance(written(result), bytes)
    assert read(written(result)) == json.loads(canonical(result))


def test_a_damaged_one_is_refused_in_words():
    body = written(LONG_ONE)
    for damaged in (body[:-1], body + b"\0", b"x" + body[1:], body[: len(MARK) + 3], body[:60], b""):
        with pytest.raises(NetdpError, match="cannot be read"):
            read(damaged)
