"""Whatever is given to a randomizer, it answers, or refuses with the name and the way out: never a raw Python error."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.mechanisms import Gaussian, Laplace, PrivUnit, RandomizedResponse

ODD = [
    "x",
    "1",
    b"1",
    None,
    float("nan"),
    float("inf"),
    True,
    1j,
    {},
    object(),
    Decimal("1"),
    10**400,
    -(10**400),
    Fraction(10**400, 3),
    np.datetime64("2020"),
    [[1, 2], [3]],
    ["a", "b"],
    [None],
    [float("nan")],
    [1 + 1j],
    [10**400],
    [object()],
    [1e308, -1e308],
    np.ma.masked_array([0.25, 0.5], [False, True]),
    np.ma.masked_array([0, 1], [False, True]),
    [],
    [[]],
    set(),
    np.zeros((2, 2, 2)),
]
NUMBERS = [1e308, -1e308, 5e-324, -3, 10**30, np.float32(1.0), [1], np.array([1.0]), np.array(1.0)]
RNG = np.random.default_rng(0)

CALLS = {
    "RandomizedResponse domain": lambda x: RandomizedResponse(x, 1.0).flip,
    "RandomizedResponse epsilon0": lambda x: RandomizedResponse(3, x).flip,
    "from_gamma domain": lambda x: RandomizedResponse.from_gamma(x, 0.5),
    "from_gamma gamma": lambda x: RandomizedResponse.from_gamma(3, x),
    "response values": lambda x: RandomizedResponse(3, 1.0).randomize(x, RNG),
    "response estimate": RandomizedResponse(3, 1.0).estimate,
    "response variance": lambda x: RandomizedResponse(3, 1.0).variance(x, 5),
    "response reports": RandomizedResponse(3, 1.0).squared_error,
    "response rng": lambda x: RandomizedResponse(3, 1.0).randomize([0], x),
    "Laplace sensitivity": lambda x: Laplace(x, 1.0).squared_error(3),
    "Laplace epsilon0": lambda x: Laplace(1.0, x).squared_error(3),
    "Laplace dimension": lambda x: Laplace(1.0, 1.0, x).squared_error(3),
    "Laplace centre": lambda x: Laplace(1.0, 1.0, 1, x).squared_error(3),
    "interval low": lambda x: Laplace.interval(x, 1.0, 1.0).curve,
    "interval high": lambda x: Laplace.interval(0.0, x, 1.0).curve,
    "Laplace profile": Laplace(1.0, 1.0).profile,
    "Laplace values": lambda x: Laplace(1.0, 1.0).randomize(x, RNG),
    "Laplace clip": Laplace(1.0, 1.0).clip,
    "Gaussian sigma": lambda x: Gaussian(x).squared_error(3),
    "Gaussian sensitivity": lambda x: Gaussian(1.0, x).delta0,
    "Gaussian epsilon0": lambda x: Gaussian(1.0).replace(epsilon0=x).delta0,
    "Gaussian delta0_at": Gaussian(1.0).delta0_at,
    "calibrated epsilon0": lambda x: Gaussian.calibrated(x, 1e-6),
    "calibrated delta0": lambda x: Gaussian.calibrated(1.0, x),
    "Gaussian values": lambda x: Gaussian(1.0).randomize(x, RNG),
    "Gaussian clip": Gaussian(1.0, dimension=2).clip,
    "Gaussian estimate": Gaussian(1.0).estimate,
    "PrivUnit dimension": lambda x: PrivUnit(x, 1.0).mean_length,
    "PrivUnit epsilon0": lambda x: PrivUnit(3, x).mean_length,
    "PrivUnit values": lambda x: PrivUnit(2, 1.0).randomize(x, RNG),
    "PrivUnit reports": PrivUnit(2, 1.0).squared_error,
}
# What one of these calls rightly takes: nothing to average is a fine list of frequencies or of ε, ∞ a fine ε, and three
# coordinates are fine where any shape is.
FINE = {
    "response variance": ([], [[]], np.zeros((2, 2, 2))),
    "Laplace profile": ([], [[]], float("inf"), np.zeros((2, 2, 2))),
}


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_refused_in_words(name):
    for odd in ODD:
        if any(type(odd) is type(fine) and str(odd) == str(fine) for fine in FINE.get(name, ())):
            CALLS[name](odd)
            continue
        with pytest.raises(InvalidValue) as refusal:
            CALLS[name](odd)
        assert len(str(refusal.value)) > 15


@pytest.mark.parametrize("name", CALLS)
def test_numbers_at_the_edge_are_answered_or_refused(name):
    for number in NUMBERS:
        try:
            answer = CALLS[name](number)
        except InvalidValue:
            continue
        if isinstance(answer, float | np.ndarray):
            assert not np.isnan(answer).any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Gaussian("1"), "sigma must be a finite number > 0, got '1'"),
        (lambda: Laplace(10**400, 1.0), "sensitivity must be a finite number > 0, got 1000"),
        (lambda: Laplace(1.0, 1e-60), "epsilon0=1e-60 drowns everything"),
        (lambda: RandomizedResponse(3, 1.0).squared_error(2**63), r"reports must be a whole number ≥ 1 and < 2⁶³"),
        (lambda: RandomizedResponse(3, 1.0).check([[1, 2], [3]]), "rows differ in length"),
        (lambda: RandomizedResponse(3, 1.0).check(["a", "b"]), "number the categories first"),
        (
            lambda: RandomizedResponse(3, 1.0).variance([0.5, np.nan, 0.5], 9),
            r"frequencies must be numbers in \[0, 1\]",
        ),
        (lambda: Laplace(1.0, 1.0).check(["0.1"]), "must be numbers, got an array of <U3; convert them first"),
        (lambda: Gaussian(1.0).clip([0.1, 1e200]), r"row 1 of values is beyond ±1e\+100: 1e\+200; rescale"),
        (lambda: Laplace(1.0, 1.0).check(np.ma.masked_array([0.1, 9.0], [0, 1])), "masked entries; drop those rows"),
        (lambda: Gaussian(1.0).delta0_at(-1.0), "epsilon0 must be a finite number ≥ 0, got -1.0"),
        (lambda: Laplace(1.0, 1.0).profile(-1.0), "epsilon must be a number ≥ 0, or a list of them, got -1.0"),
    ],
)
def test_refusals_name_the_value_and_the_way_out(call, words):
    with pytest.raises(InvalidValue, match=words):
        call()
