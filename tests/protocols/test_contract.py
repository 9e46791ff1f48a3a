"""What every protocol must do, whatever it is: one test per promise, one example per kind. New kinds are found."""

import dataclasses
import inspect
import json
import math
import re
import sys

import numpy as np
import pytest

import netdp
from netdp import graphs, simulate
from netdp.errors import InvalidValue, Unsupported
from netdp.privacy.filters import Filter
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.accuracy import expected_error, predictions
from netdp.protocols.base import Protocol
from netdp.protocols.calibration import calibrate, calibrations
from netdp.protocols.simulation import execute
from netdp.protocols.table import certified

RING = graphs.ring(5)
A = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 1]])
DELTA = 1e-3


@dataclasses.dataclass(frozen=True)
class Example:
    """A small protocol, one change of it, what its parties hold, and what its accountant asks for."""

    protocol: Protocol
    change: dict
    observers: object = (0,)
    labels: bool = False
    options: dict = dataclasses.field(default_factory=dict)
    epsilon: float = 2.0

    @property
    def values(self):
        n = self.protocol.n
        return np.arange(n) % 2 if self.labels else np.arange(n) % 2 * 0.5

    @property
    def realised(self):
        """Options with which a guarantee is proved, where it is an estimate or not offered before the run."""
        draw = getattr(self.protocol, "draw", None)
        if self.protocol.kind == "erdos-renyi-descent":  # calibrated before the draw, for graphs that stay secret
            return {}
        return {} if draw is None else {"transcript": draw(1)}


EXAMPLES = {
    "central": Example(netdp.Central(4, sigma=2.0), {"sigma": 3.0}),
    "central-descent": Example(netdp.CentralDescent(4, 3, sigma=2.0, step=0.1), {"clip": 0.5}),
    "erdos-renyi-descent": Example(netdp.ErdosRenyiDescent(8, 0.2, 3, sigma=2.0, step=0.1), {"p": 0.3}),
    "erdos-renyi-gossip": Example(
        netdp.ErdosRenyiGossip(6, p=0.6, rounds=2, sigma=2.0), {"varying": True}, options={"degree": 3}
    ),
    "faulty-shuffle": Example(
        netdp.FaultyShuffle(RING, rounds=80, epsilon0=1.0, outages=0.1),
        {"absent": "silent"},
        "curator",
        True,
        epsilon=0.8,
    ),
    "gossip": Example(netdp.Gossip(RING, rounds=3, sigma=2.0, masks=1.0), {"graph": graphs.ring(6)}),
    "gossip-descent": Example(netdp.GossipDescent(RING, 2, 2, sigma=2.0, step=0.1), {"iterations": 3}),
    "graph-walk-sum": Example(netdp.GraphWalkSum(graphs.ring(4), steps=12, sigma=3.0), {"walk": "simple"}),
    "linear-gaussian-view": Example(
        netdp.LinearGaussianView(3, A, 2 * A, [(2,), (2,), None], reading=[[0, 0, 1 / 3]]), {"sensitivity": 0.5}
    ),
    "local": Example(netdp.Local(4, sigma=2.0), {"n": 5}),
    "local-descent": Example(netdp.LocalDescent(4, 3, sigma=2.0, step=0.1), {"iterations": 4}),
    "masked-descent": Example(netdp.MaskedDescent(RING, 3, sigma=2.0, step=0.1, dimension=2), {"attempts": 2}),
    "masked-sum": Example(netdp.MaskedSum(RING, sigma=2.0), {"spread": "average"}),
    "path-sum": Example(netdp.PathSum(4, [[0, 1, 2, 3, 0, 2]], sigma=2.0, closing=True), {"paths": [[0, 1, 2, 3]]}),
    "push-sum": Example(netdp.PushSum(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], rounds=3, sigma=2.0), {"rounds": 4}),
    "randomized-gossip": Example(
        netdp.RandomizedGossip(RING, steps=8, sigma=2.0), {"steps": 9}, options={"samples": 50}
    ),
    "relayed-shuffle": Example(
        netdp.RelayedShuffle(RING, rounds=20, epsilon0=1.0, cover=8), {"cover": 9}, "curator", True, epsilon=0.8
    ),
    "ring-descent": Example(netdp.RingDescent(5, 2, sigma=2.0, step=0.1), {"rounds": 3}),
    "ring-histogram": Example(netdp.RingHistogram(8, 2, domain=3, gamma=0.5), {"domain": 4}, labels=True),
    "ring-sum": Example(netdp.RingSum(5, 2, sigma=2.0), {"closing": False}),
    "secret-ring-sum": Example(netdp.SecretRingSum(6, 2, sigma=2.0), {"sender": "hidden"}),
    "shuffle": Example(netdp.Shuffle(RING, rounds=20, epsilon0=1.0), {"reporting": "single"}, "curator", epsilon=0.8),
    "tree-sum": Example(netdp.TreeSum(7, sigma=2.0, masks=9.0), {"masks": 0.0}),
    "varying-gossip": Example(netdp.VaryingGossip([RING, graphs.star(5)], sigma=2.0), {"graphs": [RING]}),
    "walk-descent": Example(netdp.WalkDescent(8, 16, sigma=2.0, step=0.1), {"steps": 24}),
    "walk-histogram": Example(netdp.WalkHistogram(8, 16, domain=3, gamma=0.5), {"gamma": 0.6}, labels=True),
    "walk-sum": Example(netdp.WalkSum(8, 16, sigma=2.0), {"tokens": 2}),
}
each = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def of_the_package():
    """The kinds that netdp itself brings: not those of other tests and documents in the same process."""
    return {
        kind: cls
        for kind, cls in Protocol.kinds().items()
        if cls.__module__.startswith("netdp.") and getattr(sys.modules[cls.__module__], cls.__qualname__, None) is cls
    }


def descendants(cls):
    for child in cls.__subclasses__():
        yield child
        yield from descendants(child)


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(of_the_package())
    for kind, example in EXAMPLES.items():
        assert type(example.protocol) is of_the_package()[kind]
        assert example.protocol.kind == kind


def test_every_public_protocol_is_of_a_kind():
    classes = {value for name in netdp.__all__ if inspect.isclass(value := getattr(netdp, name))}
    concrete = {cls for cls in classes if issubclass(cls, Protocol) and not inspect.isabstract(cls)}
    assert len(concrete) > 15
    assert concrete == set(of_the_package().values())
    everything = {cls for cls in descendants(Protocol) if cls.__module__.startswith("netdp.")}
    assert {cls for cls in everything if not inspect.isabstract(cls)} == concrete


@each
def test_it_is_a_frozen_value(example):
    p = example.protocol
    same, other = p.replace(), p.replace(**example.change)
    assert p == same
    assert hash(p) == hash(same)
    assert p != other
    assert len({p, same, other}) == 2
    assert p != "protocol"
    for field in dataclasses.fields(p):
        with pytest.raises(AttributeError):
            setattr(p, field.name, getattr(other, field.name))
    with pytest.raises(AttributeError):
        p.sgima = 1.0  # a slip of the pen must not pass unnoticed
    assert p == same


@each
def test_it_says_what_it_is_in_one_line(example):
    p = example.protocol
    assert isinstance(p.n, int)
    assert str(p) == p.describe()
    assert "\n" not in str(p)
    assert re.search(rf"(?<!\d){p.n:,} (parties|users)", str(p)), str(p)
    assert str(p) != str(p.replace(**example.change)) or example.change.keys() <= {"clip"}
    assert isinstance(p.answer, str)
    assert p.answer


@each
def test_fields_are_replaced_by_name(example):
    p = example.protocol
    (name,) = example.change
    other = p.replace(**example.change)
    assert type(other) is type(p)
    assert json.dumps(other.to_dict()[name]) != json.dumps(p.to_dict()[name])
    with pytest.raises(InvalidValue, match=f"{type(p).__name__} has no field 'banana'; it has .*{name}"):
        p.replace(banana=1)


@each
def test_it_is_written_down_and_read_back(example):
    p = example.protocol
    text = json.loads(json.dumps(p.to_dict(), allow_nan=False))
    assert text["protocol"] == p.kind
    for read in (type(p).from_dict, Protocol.from_dict):
        back = read(text)
        assert back == p
        assert hash(back) == hash(p)
        assert back.to_dict() == p.to_dict()
        with pytest.raises(InvalidValue, match="unknown fields \\['banana'\\]"):
            read({**text, "banana": 1})
        for other in ("bananas", None):
            with pytest.raises(InvalidValue, match=f"{other!r}.*"):
                read({**text, "protocol": other})
        needed = next(f.name for f in dataclasses.fields(p) if f.default is dataclasses.MISSING)
        with pytest.raises(InvalidValue, match=f"{p.kind} is incomplete: .*'{needed}'"):
            read({key: value for key, value in text.items() if key != needed})
        with pytest.raises(InvalidValue, match=r"described by a dictionary, got \[\]"):
            read([])
    another = next(kind for kind in EXAMPLES if kind != p.kind)
    with pytest.raises(InvalidValue, match=f"describes the protocol '{another}', not '{p.kind}'"):
        type(p).from_dict({**text, "protocol": another})


def check_loss(loss, n, nobody, observers):
    assert isinstance(loss, Guarantee)
    assert loss.curve.shape == (n,)
    expected = np.isin(np.arange(n), nobody)
    for found in (loss.delta(0.0), loss.epsilon(DELTA)):
        np.testing.assert_array_equal(np.isnan(found), expected)
    assert loss.claim.value in ("exact", "upper", "estimate")
    assert loss.assumptions
    assert all(len(text) > 10 for text in loss.assumptions)
    assert loss.references
    assert loss.observers == observers
    assert loss.factor is None or loss.factor.shape == (n,)
    json.dumps(loss.to_dict(delta=DELTA), allow_nan=False)


@each
def test_it_is_accounted_for_with_one_entry_per_party(example):
    p = example.protocol
    alone = () if example.observers == "curator" else (0,)
    roles = () if alone else ("curator",)
    loss = account(p, example.observers, **example.options)
    check_loss(loss, p.n, list(alone), Observers(alone, roles))
    assert loss.worst_epsilon(DELTA) > 0
    structured = account(p, Observers(alone, roles), **example.options)
    np.testing.assert_array_equal(structured.epsilon(DELTA), loss.epsilon(DELTA))
    several = account(p, [*roles, 0, 2], **example.options)
    check_loss(several, p.n, [0, 2], Observers((0, 2), roles))
    for wrong in (None, [], [p.n], [0, 0], range(p.n), "Bob", 1.5):
        with pytest.raises(InvalidValue):
            account(p, wrong, **example.options)


@each
def test_all_pairs_are_its_columns(example):
    p = example.protocol
    if p.roles:
        with pytest.raises(Unsupported, match=r'account\(protocol, "curator"\)'):
            pairwise(p)
        return
    both = pairwise(p, **example.options)
    assert both.curve.shape == (p.n, p.n)
    assert both.observers == Observers(each=True)
    assert both.assumptions
    found = both.epsilon(DELTA)
    np.testing.assert_array_equal(np.isnan(found), np.eye(p.n, dtype=bool))
    column = account(p, [1], **example.options)
    # a table of all pairs keeps fewer points of each curve, on the safe side
    tolerance = 1e-9 if both.curve.kind == "gaussian" else 0.05
    others = np.arange(p.n) != 1
    exact = column.epsilon(DELTA)[others]
    assert (found[others, 1] >= exact * (1 - 1e-9)).all()
    np.testing.assert_allclose(found[others, 1], exact, rtol=tolerance)


@each
def test_its_loss_can_be_spent_on_a_filter(example):
    """Every curve of the project has a place in all sums, and costs no less than it does by itself."""
    p = example.protocol
    options = example.realised or example.options
    losses = [account(p, example.observers, **options)]
    if p.kind not in ("erdos-renyi-gossip", "erdos-renyi-descent"):  # all coalitions of drawn graphs take their time
        losses.append(account(p, colluders=1, **options))
    if not p.roles:
        losses.append(pairwise(p, **options))
    for loss in losses:
        alone = loss.worst_epsilon(DELTA)
        assert alone > 0
        year = Filter(4 * alone, DELTA)
        assert year.admits(loss)
        year.spend(loss)
        once = year.spent
        assert alone * (1 - 1e-9) <= once <= 1.25 * alone + 0.01
        assert year.admits(loss)
        year.spend(loss)
        assert once < year.spent < math.inf
        assert Filter(0.999 * alone, DELTA).admits(loss) is False


@each
def test_options_that_it_does_not_know_are_refused_by_name(example):
    p, options = example.protocol, example.options

    def questions(option):
        yield certified, lambda: account(p, example.observers, **options, **option)
        if not p.roles:
            yield certified, lambda: pairwise(p, **options, **option)
        yield calibrations, lambda: calibrate(p, example.epsilon, DELTA, **option)
        yield predictions, lambda: expected_error(p, **option)

    for table, ask in questions({"banana": 1}):
        expected = (InvalidValue, f"of {type(p).__name__} takes no option 'banana'; (its options|it has none)")
        if not table.handles(p):
            expected = (Unsupported, f"{type(p).__name__} ")
        with pytest.raises(expected[0], match=expected[1]):
            ask()
    for table, ask in questions({"adjacency": "zero-out"}):
        if "adjacency" not in table.options(p) and table.handles(p):
            with pytest.raises(InvalidValue, match="takes no option 'adjacency'"):
                ask()
    if "adjacency" in certified.options(p):  # taken, and said so; or refused: never another one without a word
        if p.kind == "walk-histogram":
            with pytest.raises((InvalidValue, Unsupported), match="zero-out"):
                account(p, [0], adjacency="zero-out")
        else:
            assert account(p, [0], adjacency="zero-out").adjacency == "zero-out"
    with pytest.raises(InvalidValue, match="unknown method 'magic'"):
        account(p, example.observers, method="magic", **options)


def reason(refusal, protocol):
    """A refusal says why: it is more than a name and a verb."""
    text = str(refusal.value)
    assert type(protocol).__name__ in text
    assert ": " in text
    assert len(text.split(": ", 1)[1]) > 30
    return True


@each
def test_the_classical_ways_are_stated_or_refused_with_a_reason(example):
    p = example.protocol
    for way in (netdp.local_dp, netdp.trusted_curator):
        if p.kind == "linear-gaussian-view":
            with pytest.raises(Unsupported) as refusal:
                way(p)
            assert reason(refusal, p)
            continue
        loss = way(p)
        check_classical(loss, p.n)
    if p.kind != "linear-gaussian-view":
        local, curator = netdp.local_dp(p), netdp.trusted_curator(p)
        assert (curator.epsilon(DELTA) <= local.epsilon(DELTA) * (1 + 1e-9)).all()


def check_classical(loss, n):
    assert loss.curve.shape == (n,)
    assert not np.isnan(loss.epsilon(DELTA)).any()
    assert loss.observers == Observers(roles=("everybody",))
    assert loss.is_certified
    assert loss.assumptions


UNPREDICTED = {
    "ring-descent",
    "central-descent",
    "masked-descent",
    "local-descent",
    "gossip-descent",
    "walk-descent",
    "erdos-renyi-gossip",
}
UNPREDICTED |= {"erdos-renyi-descent"}


@each
def test_the_error_is_predicted_or_refused_with_a_reason(example):
    p = example.protocol
    if p.kind in UNPREDICTED:
        with pytest.raises(Unsupported) as refusal:
            expected_error(p)
        assert reason(refusal, p)
        return
    worst, known = expected_error(p), expected_error(p, example.values)
    for error in (worst, known):
        assert 0 < error.total < np.inf
        assert error.rmse == pytest.approx(np.sqrt(error.total))
        assert all(part >= 0 for part in error.parts.values())
    assert known.total <= worst.total * (1 + 1e-9)


@each
def test_it_is_calibrated_or_refused_with_a_reason(example):
    p = example.protocol
    if p.kind == "linear-gaussian-view":
        with pytest.raises(Unsupported) as refusal:
            calibrate(p, 1.0, DELTA)
        assert reason(refusal, p)
        return
    found = calibrate(p, example.epsilon, DELTA)
    assert type(found) is type(p)
    before, after = p.to_dict(), found.to_dict()
    changed = [name for name in before if before[name] != after[name]]
    assert changed in (["sigma"], ["gamma"], ["epsilon0"])
    sets = ["curator"] if p.roles else [[v] for v in range(p.n)]
    worst = max(account(found, who, **example.realised).worst_epsilon(DELTA) for who in sets)
    assert worst <= example.epsilon
    assert worst > 0.8 * example.epsilon or p.kind in {"randomized-gossip", "erdos-renyi-gossip"}
    for epsilon, delta in ((-1.0, DELTA), (float("nan"), DELTA), (1.0, -0.1), (1.0, 1.0), ("1", DELTA), (True, DELTA)):
        with pytest.raises(InvalidValue):
            calibrate(p, epsilon, delta)


UNSIMULATED = {
    "ring-descent",
    "central-descent",
    "masked-descent",
    "local-descent",
    "gossip-descent",
    "walk-descent",
    "shuffle",
}
UNSIMULATED |= {"erdos-renyi-descent"}
UNSIMULATED |= {"faulty-shuffle", "relayed-shuffle"}  # collect_with_faults and collect_relayed run them


@each
def test_it_runs_or_says_what_runs_it(example):
    p = example.protocol
    if p.kind in UNSIMULATED:
        assert not execute.handles(p)
        with pytest.raises((Unsupported, InvalidValue)) as refusal:
            simulate(p, example.values, 0)  # no values: losses, or a mechanism
        if "descent" in p.kind:
            assert "LogisticParties" in str(refusal.value)
        else:
            assert reason(refusal, p)
        return
    run, same, other = (simulate(p, example.values, seed) for seed in (3, 3, 4))
    d = p.domain if example.labels else 1
    assert run.estimates.shape == (p.n, d)
    assert np.isfinite(run.estimates).all()
    assert np.array_equal(run.estimates, same.estimates)
    assert not np.array_equal(run.estimates, other.estimates)
    assert isinstance(run.protocol, Protocol)
    assert run.protocol.n == p.n
    for part in (p.answer, "seed 3"):
        assert part in str(run)
    for wrong in (example.values[:-1], ["a"] * p.n, np.full(p.n, np.nan)):
        with pytest.raises(InvalidValue):
            simulate(p, wrong, 0)
    if not example.labels:
        with pytest.raises(InvalidValue, match="more than the sensitivity"):
            simulate(p, example.values * 100, 0)
        assert np.isfinite(simulate(p, example.values * 100, 0, bounds=(0.0, p.sensitivity)).estimates).all()


NO_TRANSCRIPT = {"walk-histogram", "linear-gaussian-view", "tree-sum"}


@each
def test_what_happened_is_accounted_for_or_refused_with_a_reason(example):
    p = example.protocol
    if p.kind in UNSIMULATED - {"gossip-descent", "erdos-renyi-descent", "faulty-shuffle"} or p.kind in NO_TRANSCRIPT:
        with pytest.raises(Unsupported) as refusal:
            account(p, example.observers, transcript=object())
        assert reason(refusal, p)
        return
    with pytest.raises(InvalidValue, match="transcript"):
        account(p, example.observers, transcript="yesterday")
    if p.kind in UNSIMULATED:
        return
    run = simulate(p, example.values, 5)
    loss = account(p, [0], transcript=run.transcript)
    check_loss(loss, p.n, [0], Observers((0,)))
    assert loss.is_certified


@each
def test_sizes_beyond_what_squares_can_hold_are_refused(example):
    """(Δ/σ)² must be a double, or ε would be an overflow instead of a number."""
    protocol = example.protocol
    for field in sorted({"sigma", "sensitivity", "clip"} & {f.name for f in dataclasses.fields(protocol)}):
        for size in (1e-200, 1e200):
            with pytest.raises(
                InvalidValue, match=f"{field} must lie between 1e-60 and 1e60, got {re.escape(repr(size))}"
            ):
                protocol.replace(**{field: size})


@each
def test_a_role_that_the_protocol_has_not_is_refused(example):
    """It would stand for nobody, and the parties beside it would be lost among names."""
    roles = (*example.protocol.roles, "auditor")
    with pytest.raises(InvalidValue, match="has no 'auditor'"):
        account(example.protocol, Observers((0,), roles=roles))


@each
def test_any_two_parties_are_accounted_for(example):
    """Whoever they are, one entry for everybody, never below two that are named (docs/proofs/coalitions.md#any-coalition)."""
    p = example.protocol
    loss = account(p, colluders=2)
    assert loss.observers == Observers(roles=p.roles, any_of=2)
    assert loss.curve.shape == (p.n,)
    found = loss.epsilon(DELTA)
    assert not np.isnan(found).any()
    assert loss.is_certified
    assert any("who colludes is fixed beforehand" in text for text in loss.assumptions)
    json.dumps(loss.to_dict(delta=DELTA), allow_nan=False)
    if loss.found is not None:
        assert len(loss.found.observers.parties) <= 2
        assert loss.found.target not in loss.found.observers.parties
        assert loss.found.epsilon(DELTA) <= found[loss.found.target] * 1.01
    named = account(p, [*p.roles, 0, 2], **example.realised)
    if named.is_certified and not example.realised:
        others = [u for u in range(p.n) if u not in (0, 2)]
        assert (found[others] >= named.epsilon(DELTA)[others] * 0.99).all()


@each
def test_it_is_calibrated_against_any_two(example):
    p = example.protocol
    if p.kind == "linear-gaussian-view" or (p.kind == "ring-sum" and p.noise == "single"):
        with pytest.raises(Unsupported):
            calibrate(p, example.epsilon, DELTA, colluders=2)
        return
    found = calibrate(p, example.epsilon, DELTA, colluders=2)
    assert type(found) is type(p)
    assert account(found, colluders=2).worst_epsilon(DELTA) <= example.epsilon
