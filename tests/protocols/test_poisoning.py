"""Attacks in simulation (docs/proofs/learning.md#influence): they hurt, clipping and medians help where it is said that they do."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.baselines.protocol import CentralDescent, LocalDescent
from netdp.families.gossip.descent import GossipDescent
from netdp.families.masked.descent import MaskedDescent
from netdp.families.token.ring import RingDescent
from netdp.families.token.walk import WalkDescent
from netdp.learn import DataTable, LogisticParties, attacked, combine, influence, poisoned, replaced_tokens, train

N = 40


def made(seed=0, rows=400):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X @ [1.0, 0.5, 0.0] + 0.1 * rng.standard_normal(rows) > 0, 1.0, -1.0)


DATA = LogisticParties.deal(*made(), N)
TEST = DataTable(*made(1), ("a", "b", "c"))
PROTOCOLS = [
    CentralDescent(N, 40, sigma=0.05, step=4.0, clip=0.3),
    LocalDescent(N, 40, sigma=0.05, step=4.0, clip=0.3),
    MaskedDescent(graphs.ring(N), 40, sigma=0.05, step=4.0, clip=0.3, dimension=3),
    GossipDescent(graphs.ring(N), 40, 4, sigma=0.05, step=4.0, clip=0.3),
    WalkDescent(N, 20 * N, sigma=0.05, step=0.2, clip=0.3),
    RingDescent(N, 20, sigma=0.05, step=0.2, clip=0.3),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.kind)
def test_accuracy_falls_with_the_share_of_liars(protocol):
    for attack in ("push",) if protocol.kind == "masked-descent" else ("flip", "push"):
        clean, some, most = (attacked(protocol, DATA, share, 3, attack=attack, test=TEST) for share in (0.0, 0.2, 0.8))
        assert clean.accuracy > 0.93
        assert some.accuracy > 0.8  # a fifth does not decide
        assert most.accuracy < 0.2  # four fifths do
        assert clean.objective < some.objective < most.objective
        assert len(clean.liars) == 0
        assert len(most.liars) == 32
        assert "32 liars" in str(most)
    same = attacked(protocol, DATA, 0.2, 3, attack="push", test=TEST)
    assert np.array_equal(same.model, some.model)
    assert np.array_equal(same.liars, some.liars)


def test_liars_move_the_model_no_further_than_is_proved():
    """Same noise, same path: what flipping and pushing move against the honest run."""
    for protocol in PROTOCOLS[:4]:
        honest = train(protocol, DATA, 7).models
        for attack in ("flip", "push"):
            moved = train(protocol, poisoned(DATA, [0, 1, 2], attack), 7).models - honest
            bound = influence(protocol, [0, 1, 2])
            assert (
                np.linalg.norm(moved, axis=1) <= bound + 0.01
            ).all()  # rounding of gradients to a grid is not the liars'
            assert np.linalg.norm(moved, axis=1).max() > 0.02 * bound.max()


def test_a_median_of_tokens_survives_few_replacements_and_no_more():
    short = WalkDescent(N, N, sigma=0.05, step=0.2, clip=0.3, tokens=25)
    wrong = np.array([-40.0, -20.0, 0.0])
    models, met = replaced_tokens(short, DATA, [0], wrong, seed=2)
    assert 0.4 < (met > 0).mean() < 0.8  # 1 − (1 − 1/n)ⁿ = 0.64: already too many for a median
    clean = models[met == 0]
    lucky = np.vstack([clean, models[met > 0][: len(clean) - 1]])  # fewer than half
    middle = combine(lucky, "median")
    assert (middle >= clean.min(axis=0)).all()
    assert (middle <= clean.max(axis=0)).all()
    assert np.linalg.norm(combine(lucky, "mean")) > 5 * np.linalg.norm(middle)
    long = short.replace(steps=50 * N, tokens=5)
    _, met = replaced_tokens(long, DATA, [0], wrong, seed=2)
    assert (met > 20).all()  # with the usual visits nobody's token escapes
    models, met = replaced_tokens(short, DATA, [0], wrong, seed=2, chance=0.2)
    assert 0 < (met > 0).mean() < 0.5
    assert DATA.risk(combine(models, "median")) < 0.5 < DATA.risk(combine(models, "mean"))


def test_groups_survive_whoever_publishes_anything():
    """Labels flipped in whole groups: the median of groups ignores a minority of them, the mean does not."""
    common = {"sigma": 0.05, "step": 4.0, "clip": 0.3, "dimension": 3}
    robust = MaskedDescent(graphs.ring(N), 40, groups=8, aggregate="median", **common)
    plain = MaskedDescent(graphs.ring(N), 40, **common)
    liars = np.flatnonzero(robust.group < 3)
    lied = poisoned(DATA, liars, "push")
    losses = [DATA.risk(train(p, lied, 1).models[0]) for p in (robust, plain)]
    assert losses[0] < 0.8 * losses[1]
    clean = [DATA.risk(train(p, DATA, 1).models[0]) for p in (robust, plain)]
    assert clean[0] < clean[1] + 0.05


def test_what_is_refused():
    walk, gossip = PROTOCOLS[4], PROTOCOLS[3]
    with pytest.raises(InvalidValue, match="unknown attack 'bribe'"):
        attacked(walk, DATA, 0.1, 0, attack="bribe")
    with pytest.raises(InvalidValue, match="combines the models of several tokens"):
        attacked(gossip, DATA, 0.1, 0, aggregate="median")
    with pytest.raises(InvalidValue, match="share"):
        attacked(walk, DATA, 1.5, 0)
    with pytest.raises(InvalidValue, match="from 0 to 39"):
        poisoned(DATA, [40])
    with pytest.raises(InvalidValue, match="direction of 3 numbers"):
        poisoned(DATA, [0], "push", np.zeros(3))
    with pytest.raises(InvalidValue, match="shape"):
        combine(np.zeros(3))
    with pytest.raises(InvalidValue, match="unknown aggregate 'best'"):
        combine(np.zeros((3, 3)), "best")
    with pytest.raises(Unsupported, match="complete graph"):
        replaced_tokens(WalkDescent(graphs.ring(N), N, sigma=1.0, step=0.1), DATA, [0], np.zeros(3), 0)
    with pytest.raises(Unsupported, match="without a cap"):
        replaced_tokens(walk.replace(contributions=2), DATA, [0], np.zeros(3), 0)
