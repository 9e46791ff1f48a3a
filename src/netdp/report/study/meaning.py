"""What ε and δ mean, in sentences that somebody who knows no statistics can use, each of them a theorem.

Two worlds: in one the data in question are there, in the other they are not (or are others). (ε, δ)-privacy says of everything
that can be seen, and of every set S of things that might be seen, P(S) ≤ e^ε·P′(S) + δ and P′(S) ≤ e^ε·P(S) + δ.

**A guess is right with probability at most (e^ε + δ)/(1 + e^ε)**, if both worlds are equally likely beforehand. Let a guess be any
rule, S what makes it say "there". It errs with probability α = P′(S) in the world without, β = 1 − P(S) in the world with. The
two inequalities for S and for its complement say 1 − β ≤ e^ε·α + δ and 1 − α ≤ e^ε·β + δ. Their sum is
2 − (α + β) ≤ e^ε(α + β) + 2δ, so α + β ≥ 2(1 − δ)/(1 + e^ε), and the guess is right with probability
1 − (α + β)/2 ≤ 1 − (1 − δ)/(1 + e^ε) = (e^ε + δ)/(1 + e^ε). ∎ (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015. Randomized
rules are mixtures of such rules.)

**After a finding.** Let somebody hold the data to be there with probability p, and then find S, which has probability
s = P(S) > δ if they are there. By Bayes the probability afterwards is p·s/(p·s + (1 − p)·P′(S)), and P′(S) ≥ e^−ε(s − δ). So
it is at most p·e^ε/(p·e^ε + (1 − p)(1 − δ/s)). ∎ A finding with s ≤ δ may prove anything: that is what δ allows. It is *not*
true that the ratio of the two probabilities stays below e^ε but for a chance of δ; only the above is.

**Several at once** (m records of one person). A chain of m steps: P(S) ≤ e^{mε}·P′(S) + δ·(1 + e^ε + … + e^{(m−1)ε}). ∎ To
replace what a record says is to remove one and to add another, m = 2.

`REFERENCES` says where these are printed.
"""

from __future__ import annotations

import math

from netdp.numerics.rounding import rounded_up
from netdp.privacy.readable import readable

from .wording import small

PRIORS = (0.01, 0.1, 0.5, 0.9)
"""Beliefs for which a table says what may become of them."""
REFERENCES = (
    "L. Wasserman, S. Zhou. A Statistical Framework for Differential Privacy. JASA, 2010.",
    "P. Kairouz, S. Oh, P. Viswanath. The Composition Theorem for Differential Privacy. ICML, 2015.",
    "C. Dwork, A. Roth. The Algorithmic Foundations of Differential Privacy. 2014.",
)
"""Where the theorems of this page are printed."""


def right_guesses(epsilon: float, delta: float) -> float:
    """How often the best guess between two equally likely worlds is right, at most.

    >>> right_guesses(0.0, 0.0), round(right_guesses(1.0, 1e-6), 4), right_guesses(math.inf, 1e-6)
    (0.5, 0.7311, 1.0)
    """
    if epsilon > 700:
        return 1.0
    return 1 - (1 - delta) / (1 + math.exp(epsilon))


def belief_after(before: float, epsilon: float, delta: float) -> float:
    """The largest belief after a finding whose probability is at least √δ, with the belief `before` it (above, with s = √δ).

    >>> round(belief_after(0.5, 1.0, 1e-6), 4), round(belief_after(0.01, 1.0, 1e-6), 5), belief_after(0.5, math.inf, 0.0)
    (0.7313, 0.02675, 1.0)
    """
    if epsilon > 700:
        return 1.0
    return 1 / (1 + (1 - before) / before * (1 - math.sqrt(delta)) * math.exp(-epsilon))


def percent_up(share: float) -> str:
    """A share in per cent with one digit, rounded up.

    >>> [percent_up(x) for x in (0.5, 0.73106, 0.99999, 1.0)]
    ['50 %', '73.2 %', '100 %', '100 %']
    """
    tenths = math.ceil(share * 1000 * (1 - 1e-12))
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths / 10:.1f} %"


def chance_words(delta: float) -> str:
    """A small probability in words.

    >>> chance_words(1e-6), chance_words(3e-5)
    ('10⁻⁶ (one in 1,000,000)', '3·10⁻⁵ (one in 33,333)')
    """
    return f"{small(delta)} (one in {math.floor(1 / delta * (1 + 1e-12)):,})"


def sentences(epsilon: float, delta: float, unit: str) -> list[str]:
    """What the promise means: the definition, a guess, a finding, several records, what is not promised."""
    one, other, thing = (
        ("with a record", "without it", "a record")
        if unit == "record"
        else ("with a party's own data", "with any other data in their place", "a party")
    )
    factor = "not bounded by" if epsilon > 700 else f"at most {readable(math.exp(epsilon))} times"
    after = percent_up(belief_after(0.5, epsilon, delta))
    out = [
        f"Whatever anybody looks for in all they have seen: the probability to find it {one} is {factor} the probability to "
        f"find it {other} (e to the power ε), plus δ = {chance_words(delta)}; and the other way round. That is the definition of "
        f"(ε, δ)-differential privacy, here with ε = {epsilon:g}.",
        f"Suppose that somebody knows everything else, and that two worlds are equally likely, one {one} and one {other}. A blind "
        "guess between them is right in 50 of 100 cases. With all that was seen, and whatever is computed from it, a guess is "
        f"right in at most {percent_up(right_guesses(epsilon, delta))} of cases: (e^ε + δ)/(1 + e^ε).",
        f"Somebody who held one of them 50 % likely may hold it at most {after} likely after a finding that had a probability of "
        f"at least {rare_words(delta)} (√δ). The table below says the same for other beliefs. Rarer findings may prove more, and "
        "one with a probability of δ or less may prove everything: this is what δ leaves open.",
    ]
    if unit == "record":
        out.append(
            "These figures are about one record. Somebody with m records in the data is protected less: read m·ε in place of ε, "
            "and δ·(1 + e^ε + … + e^((m−1)ε)) in place of δ. To learn what a record says, rather than whether it is there, "
            "counts as m = 2."
        )
    return [
        *out,
        f"Nothing is said about conclusions that would be drawn just as well {other}: an answer about many may tell something "
        f"about everybody. What is bounded is what {thing} adds to it. Other studies about the same data add up; each party's "
        "ledger adds them.",
    ]


def rare_words(delta: float) -> str:
    """√δ, rounded up: what is said of findings that are at least so probable holds.

    >>> rare_words(1e-6), rare_words(1e-3)
    ('0.001', '0.032')
    """
    return f"{rounded_up(math.sqrt(delta), 2):g}"


PROOF = (
    "Let a guess be any rule that says “there” if what was seen lies in a set S. It errs with probability α = P′(S) in the "
    "world "
    "without and β = 1 − P(S) in the world with. (ε, δ)-privacy for S and for its complement says 1 − β ≤ e^ε·α + δ and "
    "1 − α ≤ e^ε·β + δ. Added: 2 − (α + β) ≤ e^ε(α + β) + 2δ, so α + β ≥ 2(1 − δ)/(1 + e^ε), and the guess is right with "
    "probability 1 − (α + β)/2 ≤ (e^ε + δ)/(1 + e^ε). ∎",
    "Let somebody believe with probability p, then find S, which has probability s > δ in the world with. By Bayes the "
    "belief "
    "afterwards is p·s/(p·s + (1 − p)·P′(S)), and P′(S) ≥ e^−ε(s − δ). So it is at most "
    "p·e^ε/(p·e^ε + (1 − p)(1 − δ/s)); the table takes s = √δ. ∎ It would be wrong to say that the odds stay within a "
    "factor e^ε "
    "but for a probability of δ; only this holds.",
    "For m records follow a chain of m neighbours: P(S) ≤ e^(mε)·P′(S) + δ·(1 + e^ε + … + e^((m−1)ε)). ∎",
)
"""The proofs of what `sentences` says."""
