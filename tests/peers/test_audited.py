"""Audits of what peers sent: a sound recording passes, and each planted bug is caught by the check or finding that is meant for it.

Peers live in memory, on a virtual clock, and record as processes do; one run is of real processes. Their secrets are new in every
run, so a sound recording passes but for one run in some hundred thousand; what is planted shows in every run.

docs/proofs/audit.md#recordings.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip import peer as gossip_kind
from netdp.families.masked import peer as learner
from netdp.families.masked import peer as masked_kind
from netdp.families.masked import protocol as masked_protocol
from netdp.families.shuffle import peer_walk as shuffle_spread
from netdp.families.shuffle.reports import Hop
from netdp.families.token import peer_ring as ring_kind
from netdp.families.token.ring import ring_contributions
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.peers import streams
from netdp.peers.identity import Identity
from netdp.peers.messages import Item, ItemKind, Key, signed_bytes
from netdp.peers.recordings.audit import audit_recording
from netdp.peers.recordings.canaries import CANARIES, audit_study, run_with_canaries
from netdp.peers.recordings.recording import read_recording
from netdp.peers.study import Study, Task, Training

sys.path.append(str(Path(__file__).parent))

import recordings
import shuffled

from netdp.families.shuffle.reports import hop

D, SURE = 240, 1 - 1e-6
CELLS = Task(kind="histogram", column="x", bounds=(0, D), bins=D)
RECORDS = Task(kind="histogram", column="x", bounds=(0, D), bins=D, unit="record", max_records=D)
MASKED = {"kind": "masked-sum", "sigma": 1.0, "grid": 2.0**-10, "modulus": 2**32}
RING = {"kind": "ring-sum", "sigma": 2.0, "grid": 2.0**-10}
MONTHLY = Task(kind="histogram", column="x", bounds=(0, D), bins=D, period="m", periods=("jan", "feb", "mar"))
GOSSIP = {"kind": "gossip", "sigma": 2.0, "grid": 2.0**-30, "rounds": 4, "refresh": 1.0}
MEAN = Task(kind="mean", column="x", bounds=(0, 9))
LABELS = Task(kind="histogram", column="x", categories=("a", "b", "c"))
COLUMNS = ("a", "b", "c", "d")
TRAIN = Training(
    features=[{"name": name, "range": [-1, 1]} for name in COLUMNS], label="y", classes=["no", "yes"], min_records=1,
    max_records=8, records=18,
)  # fmt: skip
DESCENT = {
    "kind": "masked-descent", "iterations": 40, "sampling": 0.25, "clip": 0.05, "step": 0.05, "average": "last", "sigma": 0.02,
    "grid": 2.0**-14, "modulus": 2**32,
}  # fmt: skip


@pytest.fixture
def folder():
    with shuffled.folder() as made:
        yield made


def cells(*numbers):
    return [{"x": cell + 0.5} for cell in numbers]


def made(folder, task, n, protocol, rows, *, vanishes=None, **options):
    """Record one run of n parties with these rows."""
    study = recordings.study_of(folder, task, n, protocol, **options)
    recordings.deal(folder, study, rows)
    recordings.run(folder, study, vanishes=vanishes)
    return study


def masked(folder, n=4, *, coins=False, sigma=1.0, **options):
    """A masked sum of canaries: p0 holds each by a coin, the others every fifth."""
    rng = np.random.default_rng(1)
    rows = [cells(*np.flatnonzero(rng.integers(2, size=D))), *[cells(*range(u, D, 5)) for u in range(1, n)]]
    study = made(folder, RECORDS, n, MASKED | {"sigma": sigma}, rows, **options)
    if coins:
        told = {"study": study.hash.hex(), "target": "p0", "coins": True, "count": D}
        (folder / CANARIES).write_text(json.dumps(told))
    return study


def audited(*folders, **options):
    return audit_recording(list(folders), confidence=SURE, **options)


def wrong(audit):
    """The names of all that is wrong."""
    rows = [finding.name for finding in audit.findings if finding.verdict.is_bad]
    return {*rows, *(check.name for check in audit.checks if not check.ok)}


def words(audit, name):
    return next(check.words for check in audit.checks if check.name == name)


# ── sound ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sound():
    """A sound recording of a masked sum."""
    with shuffled.folder() as made_here:
        masked(made_here, coins=True)
        yield made_here


def test_a_sound_masked_sum_passes_and_the_attack_sees_what_there_is(sound):
    audit = audited(sound)
    assert audit.ok, wrong(audit)
    (total, canaries) = audit.findings
    assert (total.name, canaries.name, total.about) == ("the sum", "canaries", "p0")
    assert 0.6 * total.claimed < total.measured.epsilon < total.claimed
    assert 0 <= canaries.measured.epsilon < canaries.claimed
    assert "coins guessed right" in words(audit, "coins of one run")
    assert json.dumps(audit.to_dict())


def test_who_looks_can_be_named(sound):
    audit = audited(sound, observers=["p1", 3], target="p2", delta=1e-7)
    assert audit.ok
    assert audit.delta == 1e-7
    assert {row.observers.parties for row in audit.findings} == {(1, 3)}
    assert audit.findings[0].target == 2
    # three of four look: nothing but its own noise hides the last one
    alone = audited(sound, observers=["p1", "p2", "p3"])
    assert alone.ok, wrong(alone)
    assert alone.findings[0].claimed > audited(sound).findings[0].claimed
    for observers, target in ((["p1"], "p1"), ([], None), (["p9"], None), ([7], None)):
        with pytest.raises(InvalidValue):
            audited(sound, observers=observers, target=target)


def test_averages_follow_from_what_was_published(folder):
    rows = [cells(*range(u, D, 3)) for u in range(4)]
    made(folder, RECORDS, 4, MASKED | {"spread": "average"}, rows, graph="ring:4")
    audit = audited(folder)
    assert audit.ok, wrong(audit)
    assert "averages are what follows" in words(audit, "rounds as stated")
    assert 0.6 * audit.findings[0].claimed < audit.findings[0].measured.epsilon

    def nudged(to, messages):
        return [
            Item(one.key, one.body[:8] + bytes(8) + one.body[16:])
            if isinstance(one, Item) and one.key.kind == ItemKind.STATE
            else one
            for one in messages
        ]

    recordings.rewrite(folder / "p1.frames", nudged)
    assert "is not what follows" in words(audited(folder), "rounds as stated")


def test_a_second_attempt_passes(folder):
    """One who vanishes makes a second attempt, under other pads."""
    masked(folder, 5, attempts=2, absent=1, colluders=2, vanishes=2)
    audit = audited(folder)
    assert audit.ok, wrong(audit)
    assert set(read_recording(folder).rosters) == {1, 2}
    assert 2 in audit.findings[0].observers.parties  # who was missing sees whether pads serve twice
    assert "pairs of sums" in words(audit, "no pad serves twice")


def again_folder(path):
    path.mkdir()
    return path


def monthly(u):
    """A party that is in another cell every month."""
    return [{"x": u + 10 * k + 0.5, "m": month} for k, month in enumerate(MONTHLY.periods)]


@pytest.mark.parametrize(
    ("task", "protocol"), [(CELLS, RING), (CELLS, RING | {"rounds": 3}), (MONTHLY, RING | {"rounds": 3})],
    ids=["one round", "three rounds", "periods"],
)  # fmt: skip
def test_a_sound_ring_passes_and_is_attained(folder, task, protocol):
    made(folder, task, 4, protocol, [cells(u) if task is CELLS else monthly(u) for u in range(4)], graph="ring:4")
    audit = audited(folder)
    assert audit.ok, wrong(audit)
    assert audit.findings
    assert all(0.6 * row.claimed < row.measured.epsilon < row.claimed for row in audit.findings)


@pytest.mark.parametrize(
    "more", [{}, {"gap": 0.3}, {"edge_probability": 0.7, "seed": "5" * 32}], ids=["plain", "accelerated", "changing"]
)
def test_sound_gossip_passes_and_is_attained(folder, more):
    made(folder, CELLS, 5, GOSSIP | more, [cells(u) for u in range(5)], graph="ring:5")
    audit = audited(folder)
    assert audit.ok, wrong(audit)
    assert {row.name for row in audit.findings} == {"worst pair", "farthest pair"}
    assert all(0.6 * row.claimed < row.measured.epsilon < row.claimed for row in audit.findings)


@pytest.mark.parametrize(
    ("task", "protocol", "more"),
    [
        (CELLS, {"kind": "walk-sum", "sigma": 2.0, "grid": 2.0**-10, "steps": 12, "tokens": 2}, {}),
        (CELLS, {"kind": "ring-sum", "sigma": 2.0, "grid": 2.0**-6, "rounds": 2, "law": "laplace"}, {}),
        (MONTHLY, {"kind": "walk-sum", "sigma": 2.0, "grid": 2.0**-10, "steps": 12, "tokens": 2}, {}),
        (LABELS, {"kind": "walk-histogram", "gamma": 0.5, "steps": 8}, {}),
        (LABELS, {"kind": "ring-histogram", "gamma": 0.5, "rounds": 2}, {}),
        (CELLS, {"kind": "randomized-gossip", "sigma": 2.0, "grid": 2.0**-30, "wakes": 6, "refresh": 1.0}, {}),
        (LABELS, {"kind": "shuffle", "epsilon0": 1.0, "rounds": 3}, {"curator": True, "colluders": 0}),
        (LABELS, {"kind": "shuffle", "epsilon0": 1.0, "rounds": 3, "cover": 4}, {"curator": True, "colluders": 0}),
    ],
    ids=[
        "walk-sum",
        "Laplace ring",
        "walk-sum over time",
        "walk-histogram",
        "ring-histogram",
        "randomized-gossip",
        "shuffle",
        "relayed",
    ],
)
def test_other_kinds_conform(folder, task, protocol, more):
    rows = [[{"x": "abc"[u % 3]}] if task is LABELS else monthly(u) if task is MONTHLY else cells(u) for u in range(4)]
    made(folder, task, 4, protocol, rows, **more)
    audit = audited(folder)
    assert audit.ok, wrong(audit)
    assert not audit.findings
    assert "simulation" in audit.notes[0]
    assert "nothing was sent" not in words(audit, "rounds as stated")
    if protocol["kind"] == "ring-sum":
        assert "of the discrete Laplace law" in words(audit, "noise has the stated law")
    if protocol["kind"] == "walk-sum":
        assert "of the stated deviation" in words(audit, "noise as large as stated")


# ── canaries by real processes ────────────────────────────────────────────────────────────────────────────────────────


def test_real_processes_with_canaries(tmp_path):
    """From a study about a mean to a recording of canaries, by processes with keys and ledgers of their own."""
    draft = Study.plan(
        "waits",
        Task(kind="mean", column="x", bounds=(0, 9)),
        list("abcd"),
        graph="ring:4",
        epsilon=8.0,
        delta=1e-6,
        colluders=2,
    )
    draft.write(tmp_path / "study.toml")
    out = run_with_canaries(tmp_path / "study.toml", tmp_path / "record", count=D, seed=3)
    recording = read_recording(out)
    assert recording.study.settings.sigma == draft.settings.sigma
    assert recording.study.privacy.colluders == 2
    assert recording.study.graph.m == 4
    audit = audited(out)
    assert audit.ok, wrong(audit)
    assert [row.name for row in audit.findings] == ["the sum", "canaries"]
    assert len(audit.findings[0].observers.parties) == 2
    with pytest.raises(InvalidValue, match="not empty"):
        run_with_canaries(tmp_path / "study.toml", out, count=D)


def test_audit_studies_keep_what_privacy_rests_on(folder):
    """Grid, noise, colluders and absences stay; the promise is computed anew, and what has no canaries says so."""
    plans = [
        (MASKED | {"modulus": 2**20, "grid": 2.0**-6}, {"attempts": 2, "absent": 1, "colluders": 2}),
        (RING, {}),
        (GOSSIP | {"grid": 2.0**-40}, {}),
    ]
    for number, (settings, more) in enumerate(plans):
        kind = settings["kind"]
        study = recordings.study_of(again_folder(folder / str(number)), MEAN, 5, settings, graph="ring:5", **more)
        found = audit_study(study, 64)
        kept = study.settings.model_dump() | {"modulus": getattr(found.settings, "modulus", None)}
        assert {key: value for key, value in kept.items() if value is not None} == found.settings.model_dump()
        terms = ("attempts", "absent", "colluders", "delta")
        assert [getattr(found.privacy, name) for name in terms] == [getattr(study.privacy, name) for name in terms]
        assert found.task.unit == ("record" if kind == "masked-sum" else "party")
        assert found.check_promise() <= found.privacy.epsilon <= 1.03 * found.check_promise()
        assert not found.is_complete
    walk = {"kind": "walk-sum", "sigma": 2.0, "grid": 2.0**-10, "steps": 12}
    walking = recordings.study_of(again_folder(folder / "walk"), MEAN, 4, walk)
    with pytest.raises(Unsupported, match="walk-sum"):
        audit_study(walking, 64)


# ── planted: pads ─────────────────────────────────────────────────────────────────────────────────────────────────────


def plant_pads(monkeypatch, change):
    """Pads as `change(shared, context, numbers, modulus, sound)` makes them, in what runs and in what audits alike."""
    sound_pad = streams.pad
    monkeypatch.setattr(streams, "pad", lambda *given: change(*given, sound_pad))


def test_short_pads(folder, monkeypatch):
    plant_pads(monkeypatch, lambda s, c, d, q, pad: pad(s, c, d, q) & np.uint64(0xFFFF))
    masked(folder)
    assert "published numbers are uniform" in wrong(audited(folder))
    monkeypatch.undo()  # also with pads that the auditor computes otherwise
    assert "published numbers are uniform" in wrong(audited(folder))


@pytest.mark.parametrize("secret", ["zeros", "hash"])
def test_pads_from_a_public_seed(folder, monkeypatch, secret):
    publicly = {}
    plant_pads(monkeypatch, lambda s, c, d, q, pad: pad(publicly["secret"], c, d, q))
    publicly["secret"] = bytes(32)
    if secret == "hash":
        draft = recordings.study_of(folder, RECORDS, 4, MASKED)
        publicly["secret"] = draft.hash
    masked(folder)
    audit = audited(folder)
    assert "pads are secret" in wrong(audit)
    assert ("all-zero" if secret == "zeros" else "the study's hash") in words(audit, "pads are secret")


def test_no_pads_at_all(folder, monkeypatch):
    plant_pads(monkeypatch, lambda s, c, d, q, pad: np.zeros(d, dtype=np.uint64))
    masked(folder)
    assert {"pads are secret", "published numbers are uniform"} <= wrong(audited(folder))


def test_pads_that_serve_again_in_a_second_attempt(folder, monkeypatch):
    """One party vanishes; pads that are not bound to the attempt show the difference of two noises to who holds its keys."""
    plant_pads(
        monkeypatch, lambda s, c, d, q, pad: pad(s, c[-16:], d, q)
    )  # only the pair is left of what they belong to
    masked(folder, 5, attempts=2, absent=1, colluders=2, vanishes=4)
    recording = read_recording(folder)
    assert len(recording.rosters) == 2, "both attempts have contributions"
    audit = audited(folder)
    assert "no pad serves twice" in wrong(audit)
    assert "attempt 1 and in attempt 2" in words(audit, "no pad serves twice")


def test_pads_that_serve_again_in_a_second_study(folder, monkeypatch):
    plant_pads(monkeypatch, lambda s, c, d, q, pad: pad(s, c[-16:], d, q))
    one, two = (again_folder(folder / name) for name in ("one", "two"))
    masked(one)
    for u in range(4):
        shutil.copytree(one / f"p{u}" / "keys", two / f"p{u}" / "keys")
    masked(two, nonce="2" * 32)
    assert audited(one).ok
    assert audited(two).ok
    assert "no pad serves twice" in wrong(audited(one, two))


def test_two_sound_studies_of_the_same_parties_pass_together(folder):
    one, two = (again_folder(folder / name) for name in ("one", "two"))
    masked(one)
    for u in range(4):
        shutil.copytree(one / f"p{u}" / "keys", two / f"p{u}" / "keys")
    masked(two, nonce="2" * 32)
    audit = audited(one, two)
    assert audit.ok, wrong(audit)
    assert "pairs of sums" in words(audit, "no pad serves twice")
    assert len(audit.findings) == 2


# ── planted: noise ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_halved_noise(folder, monkeypatch):
    monkeypatch.setattr(masked_protocol, "DiscreteGaussian", lambda share: DiscreteGaussian(share // 4))
    masked(folder, coins=True)
    assert {"noise as large as stated", "the sum"} <= wrong(audited(folder))


def test_canaries_tell_of_noise_that_is_all_but_left_out(folder, monkeypatch):
    """Whatever the law of the noise: the coins are guessed, in one run, more often than the claim allows."""
    monkeypatch.setattr(masked_protocol, "DiscreteGaussian", lambda share: DiscreteGaussian(share // 4096))
    masked(folder, coins=True, sigma=4.0)
    audit = audited(folder)
    assert {"coins of one run", "canaries", "the sum"} <= wrong(audit)


def test_noise_that_comes_twice(folder, monkeypatch):
    """The same noise for everybody: large enough, and no two parties' numbers are hidden from each other."""
    monkeypatch.setattr(masked_kind, "noise_words", lambda *_: streams.Words(bytes(32)))
    masked(folder)
    assert "no noise comes twice" in wrong(audited(folder))


def test_closing_noise_left_out_on_the_ring(folder, monkeypatch):
    monkeypatch.setattr(
        ring_kind, "ring_contributions", lambda p, *rest: ring_contributions(p.replace(closing=False), *rest)
    )
    made(folder, CELLS, 4, RING, [cells(u) for u in range(4)], graph="ring:4")
    found = wrong(audited(folder, observers=["p2"], target="p3"))
    assert {"noise as large as stated", "these observers"} <= found


def test_closing_noise_left_out_on_a_ring_with_laplace_noise(folder, monkeypatch):
    monkeypatch.setattr(
        ring_kind, "ring_contributions", lambda p, *rest: ring_contributions(p.replace(closing=False), *rest)
    )
    protocol = {"kind": "ring-sum", "sigma": 2.0, "grid": 2.0**-6, "rounds": 2, "law": "laplace"}
    made(folder, CELLS, 4, protocol, [cells(u) for u in range(4)], graph="ring:4")
    assert "noise has the stated law" in wrong(audited(folder))


def test_noise_of_the_first_round_added_in_all(folder, monkeypatch):
    def stale(protocol, u, value, draw):
        added = ring_contributions(protocol, u, value, draw)
        first = added[0] - ring_kind.ring_contributions.quiet(protocol, u, value)[0]
        return added if u else ring_kind.ring_contributions.quiet(protocol, u, value) + first

    stale.quiet = lambda p, u, value: ring_contributions(
        p, u, value, lambda variance, size: np.zeros(size, dtype=np.int64)
    )
    monkeypatch.setattr(ring_kind, "ring_contributions", stale)
    made(folder, MONTHLY, 4, RING | {"rounds": 3}, [monthly(u) for u in range(4)], graph="ring:4")
    assert "no noise comes twice" in wrong(audited(folder))


@pytest.mark.parametrize("more", [{}, {"gap": 0.3}], ids=["plain", "accelerated"])
def test_fresh_noise_left_out_in_gossip(folder, monkeypatch, more):
    inner = gossip_kind.gossip_noises

    def stale(protocol, value, words):
        drawn = inner(protocol, value, words)
        drawn[1:] = drawn[1:2]  # the first fresh noise, again and again
        return drawn

    monkeypatch.setattr(gossip_kind, "gossip_noises", stale)
    made(folder, CELLS, 5, GOSSIP | more, [cells(u) for u in range(5)], graph="ring:5")
    assert "no noise comes twice" in wrong(audited(folder))


# ── planted: training ─────────────────────────────────────────────────────────────────────────────────────────────────


def trained(folder):
    rng = np.random.default_rng(2)
    rows = [
        [dict(zip(COLUMNS, x, strict=True)) | {"y": "yes" if x[0] > 0 else "no"} for x in rng.uniform(-1, 1, (6, 4))]
        for _ in range(3)
    ]
    return made(folder, TRAIN, 3, DESCENT, rows)


def test_a_sound_training_passes(folder):
    trained(folder)
    audit = audited(folder)
    assert audit.ok, wrong(audit)
    (row,) = audit.findings
    assert row.name == "one iteration"
    assert row.measured.epsilon < row.claimed
    assert "pairs of sums" in words(audit, "no pad serves twice")


def test_a_sampling_rate_that_is_doubled(folder, monkeypatch):
    inner = learner.coins
    monkeypatch.setattr(learner, "coins", lambda words, count, threshold: inner(words, count, 2 * threshold))
    trained(folder)
    audit = audited(folder)
    assert "only rows that the coins chose" in wrong(audit)


def test_pads_of_a_training_that_serve_in_every_iteration(folder, monkeypatch):
    plant_pads(monkeypatch, lambda s, c, d, q, pad: pad(s, c[-16:], d, q))
    trained(folder)
    assert "no pad serves twice" in wrong(audited(folder))


# ── planted: messages ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def copy(sound, tmp_path):
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def changed(folder, name, change):
    """Every item of a file through `change(item, receiver)`: an item, a list of them, or None to leave it out."""

    def messages(to, said):
        out = []
        for message in said:
            got = change(message, to) if isinstance(message, Item) else message
            out += got if isinstance(got, list) else [] if got is None else [got]
        return out

    recordings.rewrite(folder / f"{name}.frames", messages)


def resigned(folder, item, body):
    study, author = read_recording(folder).study, item.key.author
    identity = Identity.load(folder / study.everybody[author])
    return Item(item.key, body, identity.sign(signed_bytes(study.hash, item.key, body)), item.hops)


def test_fresh_noise_on_a_retry(copy):
    """What p0 published goes to one neighbour with other numbers, and a good signature."""

    def again(item, to):
        if item.key == Key(ItemKind.CONTRIBUTION, 1, 0) and to == 1:
            return [item, resigned(copy, item, item.body[:-4] + bytes([item.body[-4] ^ 1]) + item.body[-3:])]
        return item

    changed(copy, "p0", again)
    audit = audited(copy)
    assert "said once" in wrong(audit)
    assert "contribution 0 of p0" in words(audit, "said once")


def test_a_signature_that_is_not_its_authors(copy):
    changed(copy, "p1", lambda item, to: Item(item.key, item.body, item.signature[:-1] + b"\0", item.hops))
    assert "signed by their authors" in wrong(audited(copy))


def test_a_word_before_the_vote(copy):
    changed(copy, "p2", lambda item, to: None if item.key == Key(ItemKind.VOTE, 1, 2) else item)
    audit = audited(copy)
    assert "nothing before the vote" in wrong(audit)


def test_a_body_that_is_too_short_or_too_long(copy):
    changed(
        copy,
        "p3",
        lambda item, to: (
            resigned(copy, item, item.body + b"\1\2\3\4") if item.key == Key(ItemKind.CONTRIBUTION, 1, 3) else item
        ),
    )
    audit = audited(copy)
    assert "bodies as long as they should be" in wrong(audit)
    assert "not all that was sent can be read" in audit.notes[0]


def test_something_hidden_in_a_frame(copy):
    """A pad that is given away in a field that nobody reads."""
    number = b"\xfa\x07\x20" + bytes(range(32))  # field 127 of the frame, 32 bytes
    path = copy / "p0.frames"
    recordings.rewrite(path, lambda to, messages: None)
    before = path.read_bytes()
    seen = iter(range(1000))
    inner = recordings.encode
    recordings.rewrite(path, lambda to, messages: inner(messages) + number if next(seen) == 3 else None)
    assert len(path.read_bytes()) == len(before) + len(number)
    audit = audited(copy)
    assert "nothing else is in the frames" in wrong(audit)


def test_a_message_that_the_protocol_does_not_have(copy):
    extra = Item(Key(ItemKind.STATE, 1, 0, 1), bytes(8 * D))
    changed(copy, "p0", lambda item, to: [item, extra] if item.key == Key(ItemKind.CONTRIBUTION, 1, 0) else item)
    assert "only messages of the protocol" in wrong(audited(copy))


def test_data_that_are_not_those_of_the_run(copy):
    study = read_recording(copy).study
    recordings.deal(copy, study, [cells(*range(0, D, 2))] * 4)
    audit = audited(copy)
    assert "noise as large as stated" in wrong(audit)
    assert "not those of the run" in words(audit, "noise as large as stated")


def test_a_ring_that_leaves_somebody_out(folder):
    """The token of p1 is said to have gone to p3."""
    made(folder, CELLS, 4, RING, [cells(u) for u in range(4)], graph="complete:4")
    recordings.rewrite(
        folder / "p1.frames",
        lambda to, messages: [
            one for one in messages if not (isinstance(one, Item) and one.key.kind == ItemKind.TOKEN)
        ],
    )
    assert "rounds as stated" in wrong(audited(folder))


def test_one_hop_fewer_in_the_shuffle(folder, monkeypatch):
    inner = hop

    def lazy(hand, key, round_, neighbours, *rest, **more):
        if round_ > 1:
            return inner(hand, key, round_, neighbours, *rest, **more)
        return Hop(dict.fromkeys(neighbours, ()), tuple(sorted(set(hand))))

    monkeypatch.setattr(shuffle_spread, "hop", lazy)
    rows = [[{"x": "abc"[u % 3]}] for u in range(4)]
    made(folder, LABELS, 4, {"kind": "shuffle", "epsilon0": 1.0, "rounds": 3}, rows, curator=True, colluders=0)
    audit = audited(folder)
    assert "rounds as stated" in wrong(audit)
    assert "moved less than 3 times" in words(audit, "rounds as stated")
