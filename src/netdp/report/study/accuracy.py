"""How good the answer will be, beside the two classical ways with the same promise: local DP and a trusted curator.

All three are held to the study's (ε, δ). *Local DP*: every party publishes its own numbers with noise, so the noise of n parties
adds up. *Trusted curator*: somebody sees everything and publishes the total with noise once. Gaussian noise first, as in the
study; where another usual law needs less (Laplace noise for few numbers, randomized response for counts), that is said, too: a
comparison that leaves out the better rival would flatter.

**Noise** is the standard deviation in one coordinate of the total. Gaussian: Δ/μ(ε, δ), Δ in L2. Laplace: √2·Δ₁/ε, Δ₁ in L1,
which is 2 for a number of a party in [−1, 1] and for a one-hot vector that changes, 1 for a record that is counted or a number in
[−1, 1], 2 for a record of a mean, (z, 1). Randomized response: the mean over the cells of the estimate's variance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from netdp.accounting import local_dp, trusted_curator
from netdp.errors import NetdpError
from netdp.planning.table import noise_for
from netdp.privacy.readable import readable

from .company import COMPANY
from .wording import figure, small

if TYPE_CHECKING:
    from netdp.peers.study import Study

_FEW = 10
_NOBODY = "nobody"
_CURATOR = "the curator, who sees all data"


def comparison(study: Study) -> dict[str, Any]:
    """Rows of (way, law, noise, error, who must be trusted), and what to know about them, as plain values."""
    if study.task.kind == "train":
        return {"rows": [], "notes": _training(study)}
    terms, n, own = study.privacy, study.n, study.noise()
    gauss = noise_for(study.task.sensitivity, terms.epsilon, terms.delta)
    rows = [("local DP", "Gaussian noise", gauss * math.sqrt(n), _NOBODY)]
    rows += _other(study, "local DP", gauss * math.sqrt(n))
    rows.append(("this study", study.settings.kind, own, _trusted(study)))
    rows.append(("trusted curator", "Gaussian noise", gauss, _CURATOR))
    rows += _other(study, "trusted curator", gauss)
    return {
        "rows": [
            {
                "way": way,
                "law": law,
                "noise": noise,
                "error": _error(study, noise),
                "times": noise / gauss,
                "trust": trust,
            }
            for way, law, noise, trust in rows
        ],
        "notes": _notes(study),
    }


def _error(study: Study, noise: float) -> str:
    """The error of the answer in words; in multiples of 1/N where it depends on the number of records."""
    exact = study.task.error(noise, study.n)
    if exact is not None:
        return figure(exact)
    scaled = study.task.error(noise, study.n, records=1)
    return "" if scaled is None else f"up to {figure(scaled)}/N"


def _other(study: Study, way: str, gauss: float) -> list[tuple[str, str, float, str]]:
    """The same way with another usual law of noise, if it needs less than the Gaussian."""
    task, epsilon, n = study.task, study.privacy.epsilon, study.n
    found: list[tuple[str, float]] = []
    reach = {("sum", "party"): 2, ("mean", "party"): 2, ("sum", "record"): 1, ("mean", "record"): 2}
    length = reach.get((task.kind, task.unit)) if task.is_numeric else (2 if task.unit == "party" else 1)
    if length is not None:
        found.append(("Laplace noise", math.sqrt(2) * length / epsilon * (math.sqrt(n) if way == "local DP" else 1)))
    if way == "local DP" and not task.is_numeric and task.unit == "party":
        from netdp.mechanisms.unary import better_response

        error = better_response(task.dimension, epsilon).squared_error(n)
        found.append(("randomized response", n * math.sqrt(error / task.dimension)))
    law, noise = min(found, key=lambda one: one[1], default=("", math.inf))
    trust = _NOBODY if way == "local DP" else _CURATOR
    return [(way, law, noise, trust)] if noise < gauss else []


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
    if study.task.dimension <= _FEW and study.task.kind != "scaling":
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
