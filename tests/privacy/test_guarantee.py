"""Guarantees: what they say, what they refuse, and how nan and inf are counted."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee, ProfileCurve, RenyiCurve, weakest


def make(**changes):
    fields = {
        "curve": GaussianCurve([np.nan, 1.0, 0.5]),
        "observers": [0],
        "claim": "exact",
        "assumptions": ["noise is Gaussian"],
        "references": ["a paper"],
        "factor": [np.nan, 1.0, 0.25],
    }
    return Guarantee(**{**fields, **changes})


def test_values_pass_through_with_nan_at_the_observer():
    loss = make()
    np.testing.assert_array_equal(np.isnan(loss.epsilon(1e-6)), [True, False, False])
    np.testing.assert_array_equal(np.isnan(loss.delta(1.0)), [True, False, False])
    np.testing.assert_array_equal(loss.rdp(2.0), [np.nan, 1.0, 0.25])
    np.testing.assert_array_equal(loss.mu, [np.nan, 1.0, 0.5])
    assert loss.worst == 1
    assert loss.mean_factor == 0.625
    assert loss.worst_epsilon(1e-6) == loss.epsilon(1e-6)[1]


def test_infinity_is_counted_and_nan_never():
    loss = make(curve=GaussianCurve([np.nan, np.inf, 0.5]), factor=[np.nan, np.inf, 0.25])
    assert loss.worst == math.inf
    assert loss.mean_factor == math.inf
    assert loss.worst_epsilon(1e-6) == math.inf
    nobody = make(curve=GaussianCurve([np.nan]), factor=[np.nan])
    assert math.isnan(nobody.worst)
    assert math.isnan(nobody.mean_factor)
    assert math.isnan(nobody.worst_epsilon(1e-6))


def test_pairwise():
    mu = np.array([[np.nan, 1.0], [0.5, np.nan]])
    loss = Guarantee(GaussianCurve(mu), observers="each", claim=Claim.EXACT, factor=mu**2)
    assert loss.epsilon(1e-6).shape == (2, 2)
    assert loss.worst == 1
    assert "2 pairs" in loss.describe()
    assert "against: each party alone, one column per observer" in loss.describe()


def test_claims():
    assert weakest("exact", Claim.PUBLISHED, Claim.ESTIMATE) is Claim.PUBLISHED
    assert weakest(Claim.UPPER, Claim.ESTIMATE) is Claim.ESTIMATE
    assert weakest(Claim.EXACT) is Claim.EXACT
    assert [claim.is_certified for claim in Claim] == [True, True, False, False]
    assert isinstance(Claim.EXACT, str)
    assert f"{Claim.EXACT}" == "exact"
    with pytest.raises(InvalidValue, match="at least one"):
        weakest()
    with pytest.raises(InvalidValue, match="'exact', 'upper', 'estimate', 'published'"):
        weakest("certain")


@pytest.mark.parametrize("claim", ["estimate", "published"])
def test_what_is_no_bound_says_so(claim):
    loss = make(claim=claim, curve=RenyiCurve.linear([np.nan, 0.5, 0.1]), errata=["a term is missing"])
    assert loss.epsilon(1e-6)[1] > 0  # people want to compare
    assert not loss.is_certified
    assert loss.to_dict()["certified"] is False
    assert "it is NOT a bound" in loss.describe()
    assert "a term is missing" in loss.describe()
    with pytest.raises(Unsupported, match="is not a guarantee; ask for method='certified'"):
        loss.require_certified()


def test_certified_passes():
    loss = make()
    assert loss.require_certified() is loss
    assert make(claim="upper").is_certified


def test_describe_tells_everything():
    text = make(observers=(3, 5), adjacency="zero-out", slack=1e-9).describe(delta=1e-6)
    for part in (
        "privacy loss of 2 parties",
        "epsilon = 4.89 at delta = 1e-06",
        "worst 1.00, mean 0.625",
        "against: parties 3, 5 together",
        "zero-out",
        "exact: the true loss",
        "1.0e-09",
        "assumes: noise is Gaussian",
        "reference: a paper",
    ):
        assert part in text
    assert "against: the curator" in Guarantee(GaussianCurve(1.0), observers="curator").describe()
    assert "against: any observer of the view" in Guarantee(GaussianCurve(1.0)).describe()
    assert "of 1 party\n" in Guarantee(ProfileCurve([0.0], [[np.nan], [0.1]])).describe()
    assert "against: parties 0, 1, 2, 3, 4, 5, 6, 7 and 2 more together" in make(observers=range(10)).describe()


def test_to_dict_is_json():
    loss = make(curve=GaussianCurve([np.nan, np.inf, 0.5]), factor=[np.nan, np.inf, 0.25])
    data = json.loads(json.dumps(loss.to_dict(delta=1e-6), allow_nan=False))
    assert data["factor"] == [None, "inf", 0.25]
    assert data["curve"] == {"kind": "gaussian", "mu": [None, "inf", 0.5]}
    assert data["epsilon"][:2] == [None, "inf"]
    assert data["observers"] == {"parties": [0], "roles": []}
    assert data["unit"] == "party"
    assert data["names"] is None
    assert data["certified"] is True
    assert data["adjacency"] == "replace"
    for curve in (RenyiCurve([2.0], [0.1]), RenyiCurve.linear(0.1), ProfileCurve([0.0], [0.1])):
        json.dumps(Guarantee(curve).to_dict(delta=1e-6), allow_nan=False)


def test_arrays_are_read_only_also_after_pickling():
    for loss in (make(), pickle.loads(pickle.dumps(make()))):
        for array in (loss.factor, loss.mu):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(AttributeError):
            loss.claim = Claim.UPPER


def test_mu_only_for_gaussian_shifts():
    with pytest.raises(Unsupported, match=r"renyi curve.*no mu"):
        _ = Guarantee(RenyiCurve.linear(0.1)).mu
    with pytest.raises(Unsupported, match="worst_epsilon"):
        _ = Guarantee(RenyiCurve.linear(0.1)).worst
    with pytest.raises(Unsupported, match="worst_epsilon"):
        _ = Guarantee(RenyiCurve.linear(0.1)).mean_factor


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"curve": 1.0}, "curve must be"),
        ({"adjacency": "swap"}, "'swap' is no adjacency; choose one of 'replace'"),
        ({"claim": "sure"}, "'sure' is no claim"),
        ({"factor": [1.0, 2.0]}, r"factor has shape \(2,\)"),
        ({"factor": [np.nan, -1.0, 2.0]}, "factor must be ≥ 0"),
        ({"slack": -1.0}, "slack"),
        ({"slack": math.nan}, "slack"),
        ({"assumptions": "one string"}, "tuple of sentences"),
        ({"unit": "bit"}, "'bit' is no unit; choose one of 'party', 'record'"),
        ({"observers": [0.5]}, "observers"),
        ({"observers": [-1]}, "observers"),
        ({"observers": ""}, "empty word"),
        ({"observers": 3}, "observers must be a list"),
    ],
)
def test_bad_input(changes, match):
    with pytest.raises(InvalidValue, match=match):
        make(**changes)


def test_adjacency_words():
    assert [a.value for a in Adjacency] == ["replace", "zero-out", "add-remove"]
    assert all(a.meaning for a in Adjacency)
    assert f"{Adjacency.REPLACE}" == "replace"
