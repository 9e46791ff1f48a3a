"""What does not change while a study runs: its question, its parties, where they are drawn, what was promised."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import NetdpError
from netdp.numerics.arrays import FloatArray
from netdp.peers.study import Study
from netdp.report.layout import placed

from .place import Place
from .spent import told_epsilon

ALL_HERE = "All these parties are on this machine, and so is all that they see; in a real study nobody sees all this."
ONE_HERE = "Only what {me} itself may see: the messages it sent and got, its links, and its own ledger."

DRAWN = 20_000
"""Links that are drawn; of more a picture would show nothing, and a page would load for long."""


def about(place: Place, study: Study) -> dict[str, Any]:
    """The part of `Watch.first` that is about the study."""
    watched, running = set(place.watched(study)), study.running
    places = positions(study)
    how = study.settings
    return {
        "what": "up" if place.me is None else "home",
        "me": place.me,
        "eyes": ALL_HERE if place.me is None else ONE_HERE.format(me=place.me),
        "study": {
            "name": study.name,
            "hash": study.hash.hex() if study.is_complete else "",
            "complete": study.is_complete,
            "question": study.task.describe(),
            "protected": study.task.protected,
            "unit": str(study.task.unit),
            "delta": study.privacy.delta,
            "kind": how.kind,
            "spread": getattr(how, "spread", "flood") if how.kind == "masked-sum" else None,
            "how": running.how,
            "colluders": study.privacy.colluders,
            "attempts": study.privacy.attempts,
            "absent": study.privacy.absent,
            "n": study.n,
            "steps": running.most_steps(),
            "rounds": running.most_rounds() if how.kind in ("gossip", "shuffle") else 0,
            "visits": how.steps if how.kind.startswith("walk") else 0,
        },
        "parties": [
            {
                "name": name,
                "x": round(float(places[u, 0]), 4),
                "y": round(float(places[u, 1]), 4),
                "curator": u >= study.n,
                "mine": name in watched,
            }
            for u, name in enumerate(study.everybody)
        ],
        **links(study),
        "promised": [_stated(study)],
        "claim": None,
        "assumptions": [],
    }


def links(study: Study) -> dict[str, Any]:
    """Every pair of participants that are linked, once; of too many only how many there are."""
    near = [study.neighbours(u) for u in range(len(study.everybody))]
    count = sum(map(len, near)) // 2
    pairs = [[u, v] for u, others in enumerate(near) for v in others if u < v] if count <= DRAWN else []
    return {"links": count, "edges": pairs}


def positions(study: Study) -> FloatArray:
    """Where everybody is drawn, in the unit square; a curator beside it, on the right."""
    points = placed(study.graph)
    if len(study.everybody) == study.n:
        return points
    return np.vstack([points, [[1.25, 0.5]]])


def _stated(study: Study) -> dict[str, Any]:
    """What the study itself names."""
    against = study.privacy.colluders + study.running.has_curator
    return {
        "against": against,
        "who": study.running.who(against),
        **told_epsilon(study.privacy.epsilon),
        "stated": True,
    }


def promised(study: Study) -> dict[str, Any]:
    """What the study promises, and what is certified of it for single parties; with claim and assumptions, verbatim.

    May take long: on a walk over many links a minute.
    """
    terms, running = study.privacy, study.running
    stated, found = terms.colluders + running.has_curator, [_stated(study)]
    try:
        if (fewest := max(1, running.least_colluders + running.has_curator)) < stated:
            certified = running.worst_epsilon(fewest - running.has_curator, terms.delta)
            one = {"against": fewest, "who": running.who(fewest), **told_epsilon(certified), "stated": False}
            found.insert(0, one)
        promise = study.promise()
        return {"promised": found, "claim": promise.claim.value, "assumptions": list(promise.assumptions)}
    except NetdpError:  # too many coalitions to look at here: the study says no more
        return {"promised": found, "claim": None, "assumptions": []}
