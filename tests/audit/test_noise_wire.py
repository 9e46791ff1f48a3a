"""What real peers put on the wire is whole numbers, in every kind of study; and the two doubles among it are functions of these.

Whole parties with their keys and databases run a study of every kind; each message is read. Bodies are

    whole numbers      tokens, gossip states, released tokens: 64-bit steps of the grid
    modulo q           contributions and steps of masked sums
    sealed             reports on their way to the curator; the curator opens whole numbers
    drawn              32 bytes that a walk's first holders follow from
    doubles            states of averaging, and the curator's total. Neither holds anything of anybody's data that was not sent
                       before as a whole number: here they are computed again, to the last bit, from what was

Then: what a party draws with one value and with another, read as it is sent, tells nothing by its last digits.
"""

import hashlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from netdp.audit.noise import float_leak, on_lattice
from netdp.families.masked.protocol import averaging_row, averaging_start, averaging_step, from_bytes
from netdp.families.shuffle.reports import Reports, Total, count, take_cuts, unpacked
from netdp.families.token.peer_tokens import load_of
from netdp.peers.messages import Item, ItemKind, roster_digest
from netdp.peers.recovery.dealing import dealing_size
from netdp.peers.streams import context, noise_words, unseal

sys.path.append(str(Path(__file__).parents[1] / "peers"))

import crew
import matrix
import trials

ROWS = matrix.protocols()
LARGEST = 2**60
"""Doubles of 2⁻²⁵⁴ or more, read as whole numbers, are larger than this; tokens and states of these studies are smaller."""
WHOLE, MODULO, SEALED, DRAWN, DOUBLES, ROSTER, NOTHING, AGREED, ENVELOPES = (
    "whole",
    "modulo",
    "sealed",
    "drawn",
    "doubles",
    "roster",
    "nothing",
    "agreed",
    "envelopes",
)
SENT = {
    "masked-sum": {ItemKind.CONTRIBUTION: MODULO},
    "masked-sum, one attempt": {
        ItemKind.CONTRIBUTION: MODULO, ItemKind.KEYS: AGREED, ItemKind.DEALING: AGREED, ItemKind.PREPARE: AGREED,
        ItemKind.COMMIT: AGREED, ItemKind.REVEAL: AGREED, ItemKind.ANSWER: AGREED,
    },
    "masked-sum, averaging": {ItemKind.CONTRIBUTION: MODULO, ItemKind.STATE: DOUBLES},
    "ring-sum": {ItemKind.TOKEN: WHOLE, ItemKind.TOTAL: WHOLE},
    "ring-histogram": {ItemKind.TOKEN: WHOLE, ItemKind.TOTAL: WHOLE},
    "gossip": {ItemKind.STATE: WHOLE},
    "walk-sum": {
        ItemKind.CONTRIBUTION: DRAWN, ItemKind.TOKEN: WHOLE, ItemKind.TOTAL: WHOLE, ItemKind.OFFER: NOTHING,
        ItemKind.ACCEPT: NOTHING,
    },
    "walk-histogram": {
        ItemKind.CONTRIBUTION: DRAWN, ItemKind.TOKEN: WHOLE, ItemKind.TOTAL: WHOLE, ItemKind.OFFER: NOTHING,
        ItemKind.ACCEPT: NOTHING,
    },
    "randomized-gossip": {ItemKind.OFFER: NOTHING, ItemKind.ACCEPT: WHOLE, ItemKind.STATE: WHOLE, ItemKind.THROUGH: NOTHING},
    "shuffle": {ItemKind.BUNDLE: SEALED, ItemKind.TOTAL: DOUBLES},
    "shuffle, single directions through the server": {ItemKind.BUNDLE: ENVELOPES, ItemKind.TOTAL: DOUBLES},
    "masked-descent": {ItemKind.CONTRIBUTION: ROSTER, ItemKind.STEP: MODULO},
    "gossip-descent": {ItemKind.STATE: WHOLE},
    "walk-descent": {
        ItemKind.CONTRIBUTION: DRAWN, ItemKind.TOKEN: WHOLE, ItemKind.TOTAL: WHOLE, ItemKind.OFFER: NOTHING,
        ItemKind.ACCEPT: NOTHING,
    },
}  # fmt: skip
SENT |= {row: SENT[row.partition(",")[0]] for row in ROWS if row not in SENT and row.partition(",")[0] in SENT}


@pytest.fixture(scope="module")
def runs():
    """Everything that anybody sent in one calm run of each kind, made when it is asked for."""
    made = {}

    def run(row):
        if row not in made:
            sent = []
            twist = lambda u, to, message: sent.append((u, to, message)) or message  # noqa: E731
            trial = trials.Trial(row, 1, tolerant=False, calm=True, twist=twist).go()
            assert all(told["ok"] for told in trial.told.values())
            made[row] = trial, [(u, to, item) for u, to, item in sent if isinstance(item, Item)]
        return made[row]

    return run


def whole_numbers(body):
    """The 64-bit whole numbers of a body, if that is what it holds: None where they are doubles."""
    numbers = np.frombuffer(body, dtype="<i8")
    return numbers if (np.abs(numbers.astype(np.float64)) < LARGEST).all() else None


def test_doubles_are_not_taken_for_whole_numbers():
    assert whole_numbers(np.array([5, -7, 2**40]).astype("<i8").tobytes()) is not None
    for value in (0.1, -3.0, 1e-9, 2.0**-250, 1e200):
        assert whole_numbers(np.array([value], dtype="<f8").tobytes()) is None


@pytest.mark.parametrize("row", ROWS)
def test_every_body_is_of_the_kind_it_should_be(runs, row):
    """A kind of message that is not listed fails: whoever adds one says here what it carries."""
    trial, sent = runs(row)
    study = trial.study
    everybody, protocol = tuple(range(study.n)), study.protocol()
    seen = set()
    for _, _, item in sent:
        kind, body = item.key.kind, item.body
        if kind == ItemKind.VOTE:
            dealings = 32 if study.running.threshold is not None else 0
            assert body[: len(body) - dealings] == np.array(everybody, dtype="<u4").tobytes()
            continue
        what = SENT[row].get(kind, ROSTER if kind == ItemKind.CONTRIBUTION else None)
        seen.add(what)
        if what == ROSTER:
            assert body == roster_digest(everybody)
        elif what == NOTHING:
            assert body == b""
        elif what == DRAWN:
            assert body[:32] == roster_digest(everybody)
            assert len(body) == 64
        elif what == MODULO:
            one = protocol.sum if row == "masked-descent" else protocol
            if row == "masked-descent" and item.key.index > protocol.iterations:
                one = study.running.evaluation
            y = from_bytes(
                body[32:] if kind == ItemKind.CONTRIBUTION else body[-4 * one.dimension :], one.q, one.dimension
            )
            assert y.dtype == np.uint64  # and `from_bytes` refuses what is not below q
        elif what == WHOLE:
            numbers = body[: 8 * study.task.dimension]
            rest = np.frombuffer(body[len(numbers) :], dtype="<u4")  # a walk's token says how many parties were skipped
            assert rest.tolist() == ([0, 0] if row.startswith("walk") else [])
            assert whole_numbers(numbers) is not None
        elif what == AGREED:  # keys, hashes, sealed shares and ballots: of one length, whatever the data are
            choice = 36 * study.n
            sizes = {ItemKind.KEYS: 32 + 4 * study.n, ItemKind.DEALING: dealing_size(study.n, protocol.threshold)}
            sizes |= {ItemKind.PREPARE: choice, ItemKind.COMMIT: choice, ItemKind.REVEAL: 32 + 32 * study.n}
            assert len(body) == (sizes | {ItemKind.ANSWER: 32})[kind]
        elif what == ENVELOPES and item.key.index <= study.settings.rounds:  # of one size, whatever is in them
            each = study.running.walk().envelope + (item.key.author == study.n)
            assert len(body) == each * len(study.graph.neighbors(0))
        elif what in (SEALED, ENVELOPES):
            assert take_cuts(body, study.n, study.settings.rounds) is not None
        else:
            assert what == DOUBLES, f"{row} sends a {kind.name} that nobody has listed"
    assert seen >= set(SENT[row].values())


def test_states_of_averaging_are_functions_of_the_contributions(runs):
    """Every double that was sent, computed again from the numbers modulo q that were published, and from nothing else."""
    trial, sent = runs("masked-sum, averaging")
    protocol = trial.study.protocol()
    published = {
        item.key.author: from_bytes(item.body[32:], protocol.q, protocol.dimension)
        for _, _, item in sent
        if item.key.kind == ItemKind.CONTRIBUTION
    }
    assert len(published) == protocol.n
    states = [np.array([averaging_start(published[u], protocol.q) for u in range(protocol.n)])]
    for a, b in protocol.averaging.weights:
        before, after = states[-2] if len(states) > 1 else states[-1], []
        for u in range(protocol.n):
            members, weights = averaging_row(protocol.graph, u)
            after.append(averaging_step(weights, states[-1][members], a, b, before[u]))
        states.append(np.array(after))
    checked = [item for _, _, item in sent if item.key.kind == ItemKind.STATE]
    assert checked
    for item in checked:
        assert item.body == states[item.key.index][item.key.author].tobytes()
    first = {states[1][item.key.author].tobytes() for item in checked}
    assert not all(on_lattice(np.frombuffer(body, dtype="<f8")).ok for body in first)  # doubles they are


def test_the_total_of_a_curator_is_a_function_of_the_reports(runs):
    """Opened with the curator's key: every report is a whole number of its range, and the total follows from them."""
    trial, sent = runs("shuffle")
    study, curator = trial.study, trial.people[-1]
    everybody, rounds, reports = tuple(range(study.n)), study.settings.rounds, study.running.reports()
    hands = {}
    for u, to, item in sent:
        if item.key.kind == ItemKind.BUNDLE and to == study.n and item.key.index == rounds + 1:
            hands[u] = unpacked(take_cuts(item.body, study.n, rounds)[1], reports.size)
    opened = lambda sealed: unseal(curator, sealed, study.hash, 1, everybody)  # noqa: E731
    found = count(hands, opened, reports, study.n, curator.noise_secret)
    assert len(found.reports) == study.n
    assert all(report.dtype == np.int64 and (report >= 0).all() and (report < 4).all() for report in found.reports)
    expected = reports.estimate(found.reports, study.n)
    (body,) = {item.body for _, _, item in sent if item.key.kind == ItemKind.TOTAL}
    assert Total.from_bytes(body, study.n, rounds, reports.dimension).total.tobytes() == expected.tobytes()


# ── with one value and with another ───────────────────────────────────────────────────────────────────────────────────

DRAWS = 400
NUMBERS = ["masked-sum", "ring-sum", "gossip", "randomized-gossip", "walk-sum"]


def sent_with(row, x):
    """The first number that party 1 sends with this value, in so many studies."""
    common, people, _ = trials.scene(row, 1, False)
    study = common.model_copy()
    study.__dict__["running"] = type(common.running)(study)
    rows, everybody = study.task.rows([{"x": str(x)}]), tuple(range(study.n))
    desk = SimpleNamespace(me=1, study=study, identity=people[1], rows=rows, cards=dict(enumerate(common.cards)))
    protocol, found = study.protocol(), []
    study.running.protocol = study.running.protocol_of = lambda *_: protocol  # the same in all of them
    for number in range(DRAWS):
        study.__dict__["hash"] = hashlib.sha256(f"{row} {x} {number}".encode()).digest()
        body, secret = study.running.draw(desk, 1, everybody)
        if row == "masked-sum":
            found.append(int(from_bytes(body[32:], protocol.q, protocol.dimension)[0]))
        elif row == "walk-sum":
            load = load_of(protocol)
            numbers = np.frombuffer(secret[32:], dtype="<i8").astype(np.int64)
            found.append(int(load.add(np.zeros(1, dtype=np.int64), numbers, secret[:32], 0, 0)[0]))
        else:
            found.append(int(np.frombuffer(secret[32 if row == "randomized-gossip" else 0 :], dtype="<i8")[0]))
    return np.array(found), getattr(protocol, "step", 1.0)


@pytest.mark.parametrize("row", NUMBERS)
def test_what_a_party_sends_does_not_tell_its_value_by_its_last_digits(row):
    (low, step), (high, _) = sent_with(row, 0), sent_with(row, 120)
    assert float_leak(low, high).ok
    assert on_lattice(low * step, step).ok
    assert float_leak(low * step, high * step).ok
    assert not float_leak(
        low // 2 * 2, high // 2 * 2 + 1
    ).ok  # so many numbers would be enough to see a digit that tells


def test_reports_of_numbers_do_not_tell_the_value_by_their_last_digits():
    reports = Reports(crew.MEAN, 1.0, 2.0**-19)
    sent = []
    for x in ("0", "120"):
        row, bodies = crew.MEAN.rows([{"x": x}])[0], []
        for number in range(DRAWS):
            place = context(hashlib.sha256(f"{x} {number}".encode()).digest(), 1, (0, 1))
            bodies.append(reports.of(row, noise_words(bytes(32), place, row.tobytes())))
        sent.append(np.array([whole_numbers(body)[0] for body in bodies]))
        assert all(len(body) == 8 for body in bodies)
    assert float_leak(*sent).ok
    assert abs(sent[0].mean() - sent[1].mean()) > 2**18  # they do differ: by 2²⁰ steps
