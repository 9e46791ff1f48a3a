"""Who looks, in structure and in words."""

import json

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.privacy import Observers


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Observers()),
        ("each", Observers(each=True)),
        ("curator", Observers(roles=("curator",))),
        ([2, 5], Observers((2, 5))),
        ((np.int64(3),), Observers((3,))),
        (range(2), Observers((0, 1))),
        (Observers((1,), ("curator",)), Observers((1,), ("curator",))),
    ],
)
def test_made_from_what_people_write(given, expected):
    assert Observers.of(given) == expected
    assert hash(Observers.of(given)) == hash(expected)


@pytest.mark.parametrize("given", ["", 3, [-1], [0.5], [[0, 1]], ["Ann"], [True]])
def test_nonsense_is_refused(given):
    with pytest.raises(InvalidValue, match="observers must"):
        Observers.of(given)


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (Observers(), "any observer of the view"),
        (Observers(each=True), "each party alone, one column per observer"),
        (Observers((4,)), "party 4"),
        (Observers((4, 6)), "parties 4, 6 together"),
        (Observers(tuple(range(10))), "parties 0, 1, 2, 3, 4, 5, 6, 7 and 2 more together"),
        (Observers((1, 2), names=("Ann", "Bob")), "parties Ann, Bob together"),
        (Observers(roles=("curator",)), "the curator"),
        (Observers((3,), ("curator",)), "the curator and party 3 together"),
        (Observers(roles=("everybody",)), "everybody who sees the answer"),
    ],
)
def test_words(who, words):
    assert who.words == words


def test_json_has_parties_roles_and_names():
    assert Observers((1,), ("curator",), ("Ann",)).to_dict() == {
        "parties": [1],
        "roles": ["curator"],
        "names": ["Ann"],
    }
    assert Observers(each=True).to_dict() == {"each": True}
    assert json.loads(json.dumps(Observers((0,)).to_dict())) == {"parties": [0], "roles": []}


def test_it_is_frozen():
    with pytest.raises(AttributeError):
        Observers((0,)).parties = (1,)
