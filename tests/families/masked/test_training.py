"""Settings for training, planned from public numbers: what is promised, and that the rules say what they say."""

import math

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.training import SIZES, composed, edge_of, outlook, plan_training, scaling_sum
from netdp.learn import FromGradients, train
from netdp.learn.planning import LEAST_EDGE, NoiseWarning, rough_edge, step_for, talk_graph, warn
from netdp.models.schema import moments
from netdp.privacy import gaussian_mu
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate


@pytest.mark.parametrize(
    ("settings", "unit"),
    [
        ({"n": 64, "d": 9, "epsilon": 1.0}, "party"),
        ({"n": 2048, "d": 101, "epsilon": 0.1, "rows": 16}, "party"),
        ({"n": 5, "d": 12, "epsilon": 8.0, "rows": 3000, "unit": "record"}, "record"),
        ({"n": 20, "d": 9, "epsilon": 1.0, "colluders": 5}, "party"),
    ],
)
def test_what_is_promised_is_met_and_nothing_is_wasted(settings, unit):
    plan = plan_training(**{"delta": 1e-6, **settings})
    found = plan.guarantee
    assert found.is_certified
    assert found.unit.value == unit
    assert found.epsilon(1e-6).shape == (settings["n"],)
    assert 0.995 * settings["epsilon"] < found.worst_epsilon(1e-6) <= settings["epsilon"]
    # the same as the accountant says, asked in another way
    seen = account(plan.protocol, list(range(plan.colluders))).worst_epsilon(1e-6)
    assert seen == pytest.approx(found.worst_epsilon(1e-6), rel=1e-9)


def test_the_rough_edge_is_the_edge():
    mu = float(gaussian_mu(1.0, 1e-6))
    for extra in ({}, {"unit": "record", "rows": 40}):
        plan = plan_training(256, 20, 1.0, 1e-6, **extra)
        records = 256 * 40 if extra else None
        assert plan.edge == pytest.approx(rough_edge(256, 20, mu, records=records), rel=0.01)


def test_the_edge_counts_the_noise_that_is_there():
    """Of many runs without data: how far noise leads, against what the edge says it does."""
    protocol = MaskedDescent(graphs.ring(8), 12, sigma=0.5, step=0.25, clip=0.2, dimension=9)
    wide = protocol.replace(dimension=20_000)
    models = train(wide, FromGradients(np.zeros_like, 8, 20_000, 0.0), seed=0).models[0]
    reach = protocol.step * protocol.iterations * protocol.clip
    assert edge_of(protocol) == pytest.approx(reach / (models.std() * 3), rel=0.03)


def test_rules():
    strong, weak = plan_training(4096, 10, 10.0, 1e-6), plan_training(32, 10, 1.0, 1e-6, rows=500)
    assert (strong.protocol.clip, weak.protocol.clip) == (0.5, 0.06)
    for plan, units in ((strong, 15.0), (weak, 4.0)):
        p = plan.protocol
        assert (p.iterations, p.momentum, p.average, p.sampling) == (160, 0.9, "later", 1.0)
        way = p.step * p.iterations * p.clip / (1 - p.momentum)
        assert way == pytest.approx(min(units * plan.edge, 30 * 160))
    # the more rows average out, the tighter; of records none do
    clips = [plan_training(32, 10, 1.0, 1e-6, **more).protocol.clip for more in ({}, {"rows": 20}, {"rows": 50})]
    assert clips == pytest.approx([0.1, 0.1, 0.5 / math.sqrt(50)])
    assert plan_training(4, 300, 0.5, 1e-6, rows=200, unit="record").protocol.clip == 0.1
    # how far noise may lead: three times the edge, within 4 and 15 units; more classes, 15
    for edge, units in ((0.5, 4.0), (2.0, 6.0), (5.0, 15.0), (50.0, 15.0)):
        assert step_for(edge, iterations=160, clip=0.1) * 160 * 0.1 == pytest.approx(units * edge)
        assert step_for(edge, iterations=160, clip=0.1, model="multinomial") * 16 == pytest.approx(15.0 * edge)
    assert step_for(1e9, iterations=160, clip=0.5, model="linear") == 2.0
    assert step_for(1e9, iterations=160, clip=0.5, model="a network") == 1.0
    # rows of many numbers: sampled, but never fewer than a few hundred at a time
    large = plan_training(4, 50_000, 4.0, 1e-5, rows=2000, unit="record", iterations=20, model="a network")
    assert 256 / 2000 < large.protocol.sampling < 0.21
    assert large.guarantee.worst_epsilon(1e-5) <= 4.0


def test_what_is_given_is_taken():
    plan = plan_training(
        10, 3, 2.0, 1e-5, iterations=7, clip=0.3, step=0.125, sampling=0.5, graph=graphs.ring(10)
    ).protocol
    assert (plan.iterations, plan.clip, plan.step, plan.sampling, plan.graph.name) == (7, 0.3, 0.125, 0.5, "ring(10)")


def test_standardising_is_composed_not_added():
    """docs/proofs/learning.md#private-standardisation: both together meet the target; each alone is less, the sum of both more."""
    plan = plan_training(500, 9, 1.0, 1e-6, features=8)
    assert plan.scaling is not None
    assert plan.scaling.dimension == 16
    together = plan.guarantee.worst_epsilon(1e-6)
    assert 0.995 < together <= 1.0
    training = account(plan.protocol, [0]).worst_epsilon(1e-6)
    scaling = account(plan.scaling, [0]).worst_epsilon(1e-6)
    assert max(training, scaling) < together < training + scaling
    # Gaussian: squares of μ add up
    squares = [float(gaussian_mu(e, 1e-6)) ** 2 for e in (training, scaling, together)]
    assert squares[0] + squares[1] == pytest.approx(squares[2], rel=0.01)
    # without it, less noise
    assert plan_training(500, 9, 1.0, 1e-6).protocol.sigma < plan.protocol.sigma
    assert "means and mean squares" in str(plan.guarantee.assumptions)


def test_that_rows_are_public_is_an_assumption_where_settings_were_chosen_by_them():
    words = "about how many rows parties have (16 each at most, as stated) is public"
    for rows in (16, None):
        plan = plan_training(64, 5, 1.0, 1e-6, rows=rows, iterations=10)
        assert (words in str(plan.guarantee.assumptions)) == (rows is not None)


def test_standardising_with_sampling():
    plan = plan_training(30, 9, 2.0, 1e-5, features=8, unit="record", rows=100, sampling=0.25, iterations=20)
    assert plan.guarantee.worst_epsilon(1e-5) <= 2.0
    alone = composed(plan.protocol, (), 1).epsilon(1e-5)
    assert float(alone) < plan.guarantee.worst_epsilon(1e-5)


def test_ranges_are_composed_too():
    plan = plan_training(500, 9, 1.0, 1e-6, features=8, bounded=False)
    assert [one.dimension for one in plan.before] == [8 * SIZES, 16]
    assert 0.995 < plan.guarantee.worst_epsilon(1e-6) <= 1.0
    squares = [
        float(gaussian_mu(account(p, [0]).worst_epsilon(1e-6), 1e-6)) ** 2 for p in (*plan.before, plan.protocol)
    ]
    assert sum(squares) == pytest.approx(float(gaussian_mu(1.0, 1e-6)) ** 2, rel=0.01)
    assert "how many values of each feature are of which size" in str(plan.guarantee.assumptions)
    assert len(plan.to_dict()["before"]) == 2


@pytest.mark.parametrize("unit", ["party", "record"])
def test_distances_of_the_scaling_sum_are_attained_and_not_exceeded(unit):
    """docs/proofs/learning.md#private-standardisation: what a party or a record may publish, corners included."""
    f = 3
    protocol = scaling_sum(talk_graph(4), f, unit, rows=10)
    rng = np.random.default_rng(0)
    z = np.vstack([rng.uniform(-1, 1, (200, f)), rng.choice([-1.0, 0.0, 1.0], (200, f)), np.zeros((1, f))])
    if unit == "record":
        longest = np.linalg.norm(moments(z, unit), axis=1).max()
    else:  # parties with one row, and with several, whose means are not on the curve
        tables = (
            [[one] for one in z] + [z[rng.choice(len(z), 4)] for _ in range(200)] + [-np.ones((2, f)), np.ones((3, f))]
        )
        values = np.vstack([moments(np.array(one), unit) for one in tables])
        longest = np.linalg.norm(values[:, None] - values[None], axis=2).max()
    assert longest <= protocol.sensitivity
    assert longest == pytest.approx(protocol.sensitivity, rel=1e-9)


def test_warnings_are_predicted():
    plan = plan_training(16, 50, 0.5, 1e-6, rows=4)
    assert plan.expected < plan.edge
    assert plan.expected == pytest.approx(plan.edge / math.sqrt(1 + 12 / 4))
    with pytest.warns(NoiseWarning, match="noise will win: 16 parties of 4 rows and 50 numbers"):
        warn(plan.warnings)
    assert plan_training(2048, 15, 1.0, 1e-6, rows=16).warnings == ()
    assert "noise will win: 600 rows of 6 parties" in plan_training(
        6, 500, 0.1, 1e-6, rows=100, unit="record"
    ).warnings[0]  # fmt: skip
    assert "warning: noise will win" in str(plan)
    assert plan.to_dict()["warnings"] == list(plan.warnings)


def test_the_outlook_of_a_protocol_is_that_of_its_plan():
    for extra in ({"rows": 40}, {"rows": 40, "unit": "record"}, {"epsilon": 0.05, "rows": 3}, {}):
        plan = plan_training(**{"n": 64, "d": 9, "epsilon": 1.0, "delta": 1e-6} | extra)
        found = outlook(plan.protocol, extra.get("rows"))
        assert (found.edge, found.expected, found.warnings) == (plan.edge, plan.expected, plan.warnings)
        assert bool(found.warnings) == (found.expected < LEAST_EDGE)
    with pytest.raises(InvalidValue, match="takes a MaskedDescent"):
        outlook("ring:5")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 1}, "n must be a whole number ≥ 2, got 1"),
        ({"d": 0}, "d must be a whole number ≥ 1"),
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"unit": "row"}, "unknown unit 'row'; choose one of party, record"),
        ({"unit": "record"}, "unit='record' needs rows=…"),
        ({"records": 50}, "records=50 belongs to unit='record'"),
        ({"graph": graphs.ring(7)}, "7 nodes for n = 20"),
        ({"colluders": 20}, "colluders=20 leaves nobody"),
        ({"step": -1.0}, "step must be a finite number > 0"),
        ({"rows": 0}, "rows must be a whole number ≥ 1"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(InvalidValue, match=message):
        plan_training(**{"n": 20, "d": 5, "epsilon": 1.0, "delta": 1e-6, **settings})


def test_plans_are_remembered_and_cost_is_told():
    plan = plan_training(64, 9, 1.0, 1e-6)
    assert plan.protocol.sigma == plan_training(64, 9, 1.0, 1e-6).protocol.sigma
    assert plan.protocol.sigma == calibrate(plan.protocol.replace(sigma=1.0), 1.0, 1e-6).sigma
    assert plan.cost.iterations == 160
