"""The parts of a report that say what is promised before anything is sent: from the facts to HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from netdp.peers.study.explained import CODE
from netdp.privacy.readable import readable

from .html import Markup, joined, listed, paragraphs, table, tag
from .meaning import percent_up, rare_words
from .wording import Facts, capital, figure, formula, guessed, loss, small, when, who

_PROTECTED = "What is protected"


def head(said: Facts, short: Mapping[str, str]) -> Markup:
    """The head of the page: what it is about, in what state, and the few things that everybody wants to know.

    short   more lines of that kind, by name, from other parts
    """
    terms, planned = said["promised"], next((row for row in said["losses"] if row["promised"] is not None), None)
    rows: list[tuple[str, str]] = [
        ("Asked", capital(said["question"]) + "."),
        ("Protected", capital(said["protected"]) + "."),
        ("Promised", _with_number(
            f"ε ≤ {terms['epsilon']:g}", f" at δ = {small(terms['delta'])}, to {who(said, terms['colluders'])}."
        )),
    ]  # fmt: skip
    if planned is not None:
        kept = "" if said["kept"] else "THE PROMISE IS NOT KEPT. "
        rows.append(("Computed", _with_number(
            f"ε = {loss(float(planned['epsilon']), terms['epsilon'])}",
            f" to the same (claim: {planned['claim']}). {kept}Whoever knows everything else and guesses, at even odds, "
            f"{guessed(said)} is right in at most {percent_up(planned['right_guesses'])} of cases, instead of 50 %.",
        )))  # fmt: skip
    if said["training"] is not None and (scaled := said["training"]["scaled"]) is not None:
        both = f" at δ = {small(scaled['delta'])} to {scaled['against']}, with the study that scaled the columns, as stated here."
        rows.append(("Together", _with_number(f"ε = {readable(scaled['total'])}", both)))
    rows.append(("Taking part", f"{said['n']:,} parties" + (" and a curator." if said["has_curator"] else ".")))
    rows += short.items()
    written = f"Report on a study of netdp, for those who must judge what it reveals. Written {when(said['written'])}."
    return joined([
        tag("p", written, class_="kicker"),
        tag("h1", said["name"]),
        tag("p", *_states(said)),
        *(tag("p", one, class_="alarm") for one in said["cautions"]),
        tag("dl", *(joined([tag("dt", name), tag("dd", value)]) for name, value in rows), class_="glance"),
    ])  # fmt: skip


def _with_number(number: str, words: str) -> Markup:
    return joined([tag("span", number, class_="number"), words])


def _states(said: Facts) -> list[Markup]:
    signed = said["signatures"]
    if not signed["complete"]:
        out = [("A draft: it cannot be signed yet", "warm")]
    elif signed["all"]:
        out = [(f"Signed by all {len(signed['signed'])}", "good")]
    else:
        out = [(f"Signed by {len(signed['signed'])} of {len(said['parties'])}", "warm")]
    out.append(("The promise is kept", "good") if said["kept"] else ("The promise is NOT kept", "bad"))
    if (found := said["audit"]) is not None:
        out.append(("Audited: nothing refuted", "good") if found["ok"] else ("Audited: REFUTED", "bad"))
    return [tag("span", words, class_=f"state {kind}") for words, kind in out]


def plain_words(said: Facts) -> Markup:
    """What is asked, how, and what is protected."""
    out = []
    for one in said["sections"]:
        out.append(tag("h3", one["title"], class_="bad" if one["title"] == CODE else None))
        out += [tag("p", tag("code", line) if " " not in line else line) for line in one["sentences"]]
        if one["title"] == _PROTECTED and said["adjacency"] is not None:
            words = "Formally, two sets of data are neighbours, and must look alike, by the relation"
            out.append(tag("p", f"{words} {said['adjacency']}."))
    return joined(out)


def learned(said: Facts, chart: str) -> Markup:
    """The losses by the size of a coalition, as a table and as a picture."""
    rows = [
        [
            capital(row["who"]), loss(float(row["epsilon"]), said["promised"]["epsilon"]), small(row["delta"]), row["claim"],
            percent_up(row["right_guesses"]), "" if row["promised"] is None else f"at most {row['promised']:g}",
            str(row["attempts"]),
        ]
        for row in said["losses"]
    ]  # fmt: skip
    marked = [i for i, row in enumerate(said["losses"]) if row["promised"] is not None]
    columns = ["Who looks", "ε", "δ", "Claim", "A guess is right", "Promised: ε", "Attempts"]
    explained = [formula("a guess is right: at most so often, between two equally likely worlds, (e^ε + δ)/(1 + e^ε)")]
    return joined([
        tag("p", "What others can learn about anybody, from everything they see, the answer included. Those named together put "
            "together all they have. All figures are rounded up."),
        table("Loss by who looks", columns, rows, numbers=(1, 2, 4, 5, 6), marked=marked),
        listed([*said["claims"], *explained, *said["notes"]]),
        tag("p", _everybody(said)),
        tag("p", said["often"]),
        tag("figure", Markup(chart), tag("figcaption", _curve_words(said))),
    ])  # fmt: skip


def _everybody(said: Facts) -> str:
    """What all others together learn, or that nothing is stated of so many."""
    if not said["curve"] or said["curve"][-1][0] < said["smallest_roster"] - 1:
        return (
            "What larger groups than these can learn together is not stated here; what is left against others who deviate, below "
            "(“Against whom the promise holds”)."
        )
    epsilon = float(said["curve"][-1][1])
    bound = "nothing bounds it" if math.isinf(epsilon) else f"ε = {readable(epsilon)}"
    guess = percent_up(said["losses"][-1]["right_guesses"])
    return (
        f"If everybody else puts together what they have, against a single party: {bound}, and a guess is right in at most "
        f"{guess} of "
        "cases. Then only a party's own noise protects it."
    )


def _curve_words(said: Facts) -> str:
    terms = said["promised"]
    out = f"The red mark is what the study promises: ε ≤ {terms['epsilon']:g} to {who(said, terms['colluders'])}."
    unbounded = [k for k, e in said["curve"] if e == "inf"]
    if unbounded:
        out += f" From {unbounded[0]} on nothing bounds it."
    sizes = [k for k, _ in said["curve"]]
    if sizes and len(sizes) < sizes[-1] - sizes[0] + 1:
        out += " Between two points: no more than at the larger one."
    return out


def what_it_means(said: Facts) -> Markup:
    """ε and δ in words, with a table of beliefs and the proofs."""
    told = said["meaning"]
    rows = [[percent_up(one["before"]), percent_up(one["after"])] for one in told["beliefs"]]
    rare = rare_words(said["promised"]["delta"])
    return joined([
        *(tag("p", formula(line)) for line in told["sentences"]),
        table(f"Beliefs, after a finding of probability {rare} or more",
              ["Held likely before", "At most, after"], rows, numbers=(1,), narrow=True),
        tag("h3", "Why these sentences are true"),
        *(tag("p", formula(line), class_="soft") for line in told["proof"]),
        listed(said["references_of_meaning"]),
    ])  # fmt: skip


def whom(said: Facts) -> Markup:
    """Against which company the promise holds, and what nothing prevents."""
    found, terms = said["company"], said["promised"]
    promise = f"ε ≤ {terms['epsilon']:g} at δ = {small(terms['delta'])} to {who(said, terms['colluders'])}."
    rows = [
        ["Others who look", capital(found["curious"]) + ".", promise],
        ["Others who deviate", capital(found["malicious"]) + ".", found["promised_malicious"]],
        ["Strangers", "Without keys in the study.", found["strangers"]],
    ]
    return joined([
        table("What a party that keeps to the protocol is promised", ["Against", "These are", "Promised"], rows),
        tag("p", f"What those who deviate can do to the answer: {found['answer']}"),
        tag("h3", "What nothing here prevents"),
        tag("ul", *(tag("li", tag("strong", name), f": {words}") for name, words in said["open"].items())),
        tag("p", "More, with a test for every line: docs/threat-model.md.", class_="soft"),
    ])  # fmt: skip


def network(said: Facts, picture: str, words: str) -> Markup:
    """The picture of who talks to whom."""
    under = f"{said['network']['name']}: {words} Who talks to whom is public."
    return tag("figure", Markup(picture), tag("figcaption", under))


def accuracy(said: Facts) -> Markup:
    """The expected error beside local DP and a trusted curator."""
    found: Mapping[str, Any] = said["accuracy"]
    out = []
    if found["rows"]:
        with_error = any(row["error"] for row in found["rows"])
        rows = [
            [row["way"], row["law"], *([row["error"]] if with_error else []), figure(row["times"]), row["trust"]]
            for row in found["rows"]
        ]
        error = ["Error of each count" if said["counts"] else "Error of the answer"] if with_error else []
        columns = ["Way", "By", *error, "Noise, in a curator's", "Who must be trusted"]
        marked = [i for i, row in enumerate(found["rows"]) if row["way"] == "this study"]
        terms = said["promised"]
        caption = f"With the same promise, ε = {terms['epsilon']:g} at δ = {small(terms['delta'])}"
        out.append(table(caption, columns, rows, numbers=(2, 3) if with_error else (2,), marked=marked))
    return joined([*out, paragraphs(found["notes"])])
