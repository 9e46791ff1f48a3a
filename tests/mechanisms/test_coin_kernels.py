"""The compiled coins draw what NumPy draws, from the same words: also where 64 digits do not decide.

Proof: docs/proofs/mechanisms.md#discrete-gaussian.
"""

import subprocess
import sys

import numpy as np
import pytest

from netdp.mechanisms import discrete_gaussian
from netdp.mechanisms.coin_kernels import asked, survivors
from netdp.mechanisms.discrete_gaussian import MANY, DiscreteGaussian, _Coins, words_from


class Counted:
    """Words of a seed, with how many were drawn; `planted` stand at their places in the stream."""

    def __init__(self, seed, planted=()):
        self._words, self.used, self._planted = words_from(np.random.default_rng(seed)), 0, dict(planted)

    def __call__(self, size):
        drawn = self._words(size)
        for place, word in self._planted.items():
            if self.used <= place < self.used + size:
                drawn[place - self.used] = word
        self.used += size
        return drawn


def both(monkeypatch, draw):
    """What NumPy and what the compiled loop makes of it."""
    found = []
    for many in (1 << 60, 1):
        monkeypatch.setattr(discrete_gaussian, "MANY", many)
        found.append(draw())
    return found


@pytest.mark.parametrize("variance", [1, 2, 9, 1000, 2**31 - 1, 23_805_682_306, 2**40])
def test_compiled_draws_are_the_same(variance, monkeypatch):
    for size in (1, 17, 900):

        def draw(size=size):
            words = Counted(size)
            return DiscreteGaussian(variance).sample((size,), words).tolist(), words.used

        plain, compiled = both(monkeypatch, draw)
        assert plain == compiled


@pytest.mark.parametrize("variance", [2, 2**31 - 1])
@pytest.mark.parametrize("size", [MANY // 4, MANY - 1, MANY, 4 * MANY])
def test_on_both_sides_of_the_threshold_the_draws_are_the_same(variance, size, monkeypatch):
    """Left to itself the sampler changes over within a draw, as fewer and fewer proposals are left."""
    used = []
    compiled = _Coins._compiled
    monkeypatch.setattr(_Coins, "_compiled", lambda *given: used.append(len(given[2])) or compiled(*given))

    def draw():
        words = Counted(size)
        return DiscreteGaussian(variance).sample((size,), words).tolist(), words.used

    found = draw()
    assert bool(used) == (size >= MANY - 1)  # half as many proposals again are made
    assert all(alive >= MANY for alive in used)
    for other in both(monkeypatch, draw):
        assert other == found


def test_words_that_cannot_be_written_to_are_taken_too(monkeypatch):
    """Those of the system are such."""

    def draw():
        words = Counted(5)

        def fixed(size):
            drawn = words(size)
            drawn.flags.writeable = False
            return drawn

        return DiscreteGaussian(1000).sample((900,), fixed).tolist(), words.used

    plain, compiled = both(monkeypatch, draw)
    assert plain == compiled


FEW = """
import sys
from fractions import Fraction
import numpy as np
from netdp.mechanisms.discrete_gaussian import MANY, DiscreteGaussian, words_from
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.mechanisms.fine_gaussian import FineGaussian
words = words_from(np.random.default_rng(0))
for law in (DiscreteGaussian(10**6), FineGaussian(2**80), DiscreteLaplace(Fraction(1, 3))):
    for size in (1, 20, 1000):
        law.sample((size,), words)
print("numba" in sys.modules)
DiscreteGaussian(10**6).sample((2 * MANY,), words)
print("numba" in sys.modules)
"""


def test_a_few_numbers_are_drawn_without_compiled_code():
    """To load it takes every party of a study longer than all else that it does for one number."""
    done = subprocess.run([sys.executable, "-c", FEW], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("more", [0, 2**64 - 1])
def test_a_word_that_agrees_is_decided_by_the_next_ones(more, monkeypatch):
    """Numbers 3, 1, 2 and coins e^(−1/4), e^(−1/2): two flips for the high digit, then the low one."""
    high = _Coins(4)._make(1).first

    def draw():
        words = Counted(3, {1: high, 2: more})
        alive = _Coins(4).all_heads(np.array([3, 1, 2]), np.arange(3), 0, words)
        return alive.tolist(), words.used

    plain, compiled = both(monkeypatch, draw)
    assert plain == compiled
    assert (2 in compiled[0]) == (more == 0)  # what the next word says stands


def test_a_rare_tail_among_low_digits_is_seen(monkeypatch):
    """Digits whose coin shows heads nearly always are looked at together: one word above is a tail all the same."""
    coins = _Coins(2**60)
    assert coins._make(0).first >= discrete_gaussian._NEARLY_ONE

    def draw(planted):
        words = Counted(1, planted)
        return coins.all_heads(np.ones(50, dtype=np.int64), np.arange(50), 0, words).tolist(), words.used

    top, next_ones = 2**64 - 1, 2**64 - 1
    for planted, gone in (
        ({}, set()),
        ({7: top}, {7}),
        ({49: top}, {49}),
        ({7: coins._make(0).first, 50: next_ones}, {7}),
    ):
        plain, compiled = both(monkeypatch, lambda planted=planted: draw(planted))
        assert plain == compiled
        assert set(range(50)) - set(compiled[0]) == gone


def test_survivors_one_by_one():
    rng = np.random.default_rng(0)
    for bit in (0, 3):
        numbers, places = rng.integers(0, 16, 40), rng.permutation(40)
        flips = asked(numbers, bit)
        assert flips == sum(int(k) >> bit & 1 for k in numbers)
        drawn, first = words_from(rng)(flips), np.uint64(2**63)
        out, where = np.empty_like(numbers), np.empty_like(places)
        kept, following, ties = survivors(numbers, places, bit, drawn, first, out, where)
        words, wanted = iter(drawn.tolist()), []
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            if not number >> bit & 1 or next(words) < 2**63:
                wanted.append((number, place))
        assert list(zip(out[:kept].tolist(), where[:kept].tolist(), strict=True)) == wanted
        assert following == sum(number >> max(bit - 1, 0) & 1 for number, _ in wanted)
        assert ties == 0
        drawn[1] = first
        assert survivors(numbers, places, bit, drawn, first, out, where)[2] == 1
