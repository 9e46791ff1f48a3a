"""How good the answer of a study will be, against whom its promise holds, and what the promise means in plain words.

**How good**, beside the two classical ways with the same promise, local DP and a trusted curator. All three are held to the
study's (ε, δ). *Local DP*: every party publishes its own numbers with noise, so the noise of n parties adds up. *Trusted
curator*: somebody sees everything and publishes the total with noise once. Gaussian noise first; where another usual law errs less
(Laplace noise for few numbers, randomized response for counts), that is said, too, and every error is compared with the best
curator's: a comparison that leaves out the better rival would flatter. Each law has the question as it is best asked under it: a
mean of records from both ends under Laplace noise (`Task.under`).

**Noise** is the standard deviation in one coordinate of the total. Gaussian: Δ/μ(ε, δ), Δ in L2. Laplace: √2·Δ₁/ε, Δ₁ in L1
(`netdp.peers.study.task`). Randomized response: the mean over the cells of the estimate's variance.

**Against whom** a study's ε holds: parties that look, or parties that do what they like; and what nothing in netdp prevents.

The words of docs/threat-model.md, shortened, kind by kind; a test compares them with that page. Three kinds of others:
*curious* parties follow the protocol and look at all they are told; *malicious* ones send what they like, together, with
valid keys of their own; *strangers* have no keys in the study.

**What ε and δ mean**, in sentences that somebody who knows no statistics can use, each of them a theorem.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from netdp.errors import NetdpError
from netdp.numerics.arrays import rounded_up
from netdp.privacy.wording import readable
from netdp.protocols.alternatives import local_dp, trusted_curator
from netdp.protocols.calibration import noise_for
from netdp.report.study.wording import figure, small

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

CURIOUS = "curious: they follow the protocol, put together all they are told and keep it for ever"

MALICIOUS = "malicious: they send what they like, when they like, together, with valid keys of their own"

STRANGERS = (
    "A stranger on the network sees who talks to whom, when and how much; no value, no noise and no contribution. A caller "
    "without "
    "a certificate that the study lists is turned away."
)


@dataclass(frozen=True)
class Company:
    """What is promised against which company.

    against    the strongest company against which the study's ε holds
    malicious  what a party is promised against malicious company, in words
    answer     how far malicious company can spoil the answer, in words
    """

    against: Literal["curious", "malicious"]
    malicious: str
    answer: str


COMPANY: dict[str, Company] = {
    "masked-sum": Company(
        "malicious",
        "The same ε. A party's numbers leave once per attempt, under pads that the coalition lacks for every honest pair; "
        "nothing "
        "else that it sends follows from its data. Attempts that are made to fail are in the price.",
        "One lie can make the sum any number: a malicious member adds anything, and masked numbers cannot be checked.",
    ),
    "masked-descent": Company(
        "malicious",
        "The same ε, all iterations and the evaluation together. Whatever models the coalition makes a party compute at, "
        "its rows "
        "move what it publishes by no more than the clip.",
        "A malicious member adds any number to any sum. Held-out rows of the honest parties show a spoilt model, if their "
        "count is "
        "not spoilt too. One party that stays away ends the training.",
    ),
    "gossip-descent": Company(
        "malicious",
        "The same ε, against any number of them: local privacy of every noisy gradient, whatever models the coalition makes a "
        "party compute at. What parties further away learn less than that is about curious ones.",
        "A state can be any number in proportion: one malicious party moves all models. Who stops sending ends the training.",
    ),
    "ring-sum": Company(
        "curious",
        "Not the study's ε. The neighbours before and after a party, together, see what it added with its own share of "
        "noise only; "
        "who is before chooses the token. A study planned for two colluders covers that pair.",
        "A holder can replace the token by any number that honest ones could have reached; nobody would know.",
    ),
    "ring-histogram": Company(
        "curious",
        "Not the study's ε, but the local loss of a party's own randomized answers, all rounds together: nobody gets more.",
        "Which cells a malicious holder puts its elements in is up to it; counts that do not add up are refused.",
    ),
    "walk-sum": Company(
        "curious",
        "Not the study's ε. A malicious holder sends the token where it likes; up to a bounded number of visits a "
        "malicious "
        "coalition sees single contributions, each with the noise of its visit.",
        "A holder can replace what it holds; numbers that cannot be are refused.",
    ),
    "walk-descent": Company(
        "curious",
        "Not the study's ε. A malicious holder sends the token where it likes; up to a bounded number of visits a "
        "malicious coalition "
        "sees single gradients, at models of its choice, each with the noise of its visit.",
        "A holder can replace the model by any other; steps of honest parties pull it back as far as they come after.",
    ),
    "walk-histogram": Company(
        "curious",
        "Not the study's ε. A malicious coalition that sends a party many tokens sees as many of its randomized answers, "
        "each "
        "with its own local loss, up to a bound on visits.",
        "Which cells a malicious holder puts its elements in is up to it; counts that do not add up are refused.",
    ),
    "gossip": Company(
        "curious",
        "Not the study's ε, but at most the local loss of a party's first noisy state, which is more.",
        "A state can be any number in proportion: one malicious party moves all estimates. Who stops sending ends the "
        "study.",
    ),
    "randomized-gossip": Company(
        "malicious",
        "The same ε, against any number of them: local privacy of the first noisy value, in any order and after any loss. "
        "What "
        "single parties really learned, stated after a run, is about curious ones.",
        "A state can be any number that fits: one malicious party moves all estimates.",
    ),
    "shuffle": Company(
        "curious",
        "Not the study's ε, but the local loss ε₀ of the reports, of which each attempt has one: a report is randomized "
        "before it "
        "is sealed. Relays that hold reports back or hand them over early thin the crowd in which one hides.",
        "The curator computes the total alone and can say anything, signed. Relays can drop reports, not copy them.",
    ),
}
"""By the kind of protocol."""

OPEN: dict[str, str] = {
    "Poisoning": "A party may lie about its own data within the bounds. No protocol that hides values can see that: every "
    "answer is "
    "about what was handed in.",
    "Refusing": "Whoever must take part can stay away or stall until patience is over.",
    "Time and traffic": "Who watches the network sees which links are busy when. Losses are stated about what parties are told.",
    "Sybils": "Netdp counts keys, not people. Who signs a study decides that its parties are different people.",
    "Stolen keys, stolen folders": "Who has a party's keys can speak as it and open what was masked for it.",
    "Equivocation nobody sees": "Two signed items prove a cheat only where one honest party hears both.",
    "A party that never comes back": "An attempt counts in its ledger as broken off until its end is known.",
    "Links": "Whoever drafts a study draws its links. They must not depend on anybody's data: the drafter's duty.",
    "Which values can be checked": "Masked numbers never: any is as likely as any other. Elsewhere numbers out of all "
    "proportion are refused; a lie within that looks like noise.",
}
"""What nothing in netdp prevents, for all protocols."""

_FEW = 10

_NOBODY = "nobody"

_CURATOR = "the curator, who sees all data"


def comparison(study: Study) -> dict[str, Any]:
    """Rows of (way, law, noise, error, who must be trusted), and what to know about them, as plain values."""
    if study.task.kind == "train":
        return {"rows": [], "notes": _training(study)}
    n, own = study.n, study.noise()
    curators = _classical(study, "trusted curator")
    ours = ("this study", _kind_words(study), own, study.task, _trusted(study))
    rows = [*_classical(study, "local DP"), ours, *curators]
    best = min(_size(task, noise, n) for _, _, noise, task, _ in curators)
    return {
        "rows": [
            {
                "way": way,
                "law": law,
                "noise": noise,
                "error": _error(task, noise, n),
                "times": _size(task, noise, n) / best,
                "trust": trust,
            }
            for way, law, noise, task, trust in rows
        ],
        "notes": _notes(study),
    }


def _kind_words(study: Study) -> str:
    """What is run, and under which law of noise where that is not the Gaussian."""
    law = getattr(study.settings, "law", "gaussian")
    return study.settings.kind if law == "gaussian" else f"{study.settings.kind}, {law.title()} noise"


def error_words(study: Study) -> str:
    """The error of a study's answer in words; in multiples of 1/N, N the number of records, where it depends on that."""
    return _error(study.task, study.noise(), study.n) or f"{figure(study.noise())} in a coordinate of the total"


def _error(task: Any, noise: float, n: int) -> str:
    exact = task.error(noise, n)
    if exact is not None:
        return figure(exact)
    scaled = task.error(noise, n, records=1)
    return "" if scaled is None else f"up to {figure(scaled)}/N"


def _size(task: Any, noise: float, n: int) -> float:
    """The error as a number that ways can be compared by: of the answer, for one record, or of a coordinate of the total."""
    error = task.error(noise, n, records=1)
    return noise if error is None else float(error)


def _classical(study: Study, way: str) -> list[tuple[str, str, float, Any, str]]:
    """A classical way under Gaussian noise, and under the usual law that errs least, if that is less: with its own question."""
    from netdp.peers.study.task import Task

    task, terms, n = study.task, study.privacy, study.n
    times, trust = (math.sqrt(n), _NOBODY) if way == "local DP" else (1.0, _CURATOR)
    gauss = noise_for(task.sensitivity, terms.epsilon, terms.delta) * times
    rows = [(way, "Gaussian noise", gauss, task, trust)]
    if not isinstance(task, Task):
        return rows
    asked = task.under("laplace")
    rows.append(
        (way, "Laplace noise", math.sqrt(2) * asked.sensitivity_under("laplace") / terms.epsilon * times, asked, trust)
    )
    if way == "local DP" and not task.is_numeric and task.unit == "party" and task.periods is None:
        from netdp.mechanisms.responses import better_response

        error = better_response(task.dimension, terms.epsilon).squared_error(n)
        rows.append((way, "randomized response", n * math.sqrt(error / task.dimension), task, trust))
    best = min(rows, key=lambda row: _size(row[3], row[2], n))
    return rows[:1] if best is rows[0] else [rows[0], best]


def _trusted(study: Study) -> str:
    """Whom one must trust, and with what."""
    k, look = study.privacy.colluders, COMPANY[study.settings.kind].against == "curious"
    if study.running.has_curator:
        few = f" with at most {k} others" if k else ""
        return f"nobody with data, if all follow the protocol and the curator looks alone{few}"
    few = f"at most {k} collude" if k > 1 else "nobody colludes"
    return f"nobody, if {few}{' and all follow the protocol' if look else ''}"


def _notes(study: Study) -> list[str]:
    terms = study.privacy
    extra = [
        f"{terms.colluders} colluders" if terms.colluders > 1 else "",
        f"{terms.absent} absent" if terms.absent else "",
        f"{terms.attempts} attempts" if terms.attempts > 1 else "",
    ]
    out = [
        "Predicted from the noise alone, as a root mean square; claim: estimate. Clipping and missing data come on top."
    ]
    if any(extra):
        out.append(
            f"The study's noise also pays for {', '.join(one for one in extra if one)}; the other ways are stated for one "
            "publication."
        )
    if (
        study.task.dimension <= _FEW
        and study.task.kind != "scaling"
        and getattr(study.settings, "law", "") != "laplace"
    ):
        out.append(
            "For so few numbers other laws than the Gaussian may need less noise; the Gaussian pays off with more numbers, "
            "more "
            "parties and more studies of the same data."
        )
    if study.task.unit == "record" and study.task.kind == "mean":
        out.append("N is the number of records of all parties together.")
    return out


def _training(study: Study) -> list[str]:
    """What the same noise would reveal in the two classical ways: how good a model becomes depends on the data."""
    terms, out = study.privacy, ["How good a model becomes depends on the data, so no error is predicted here."]
    try:
        local, central = (way(study.protocol()) for way in (local_dp, trusted_curator))
    except NetdpError as problem:
        return [*out, f"No comparison with other ways: {problem}."]
    return [
        *out,
        f"With the very same noise in every sum, a trusted curator's training would reveal ε = "
        f"{readable(central.worst_epsilon(terms.delta))} at δ = {small(terms.delta)} (claim: {central.claim.value}), and "
        "parties that "
        f"publish their own noisy gradients {readable(local.worst_epsilon(terms.delta))} ({local.claim.value}).",
    ]


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
