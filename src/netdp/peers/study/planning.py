"""From a privacy target to a study, or to two of them: the noise that keeps the promise.

The loss of a study is computed by its kind (`netdp.peers.kinds`); planning only searches for the least noise with which it
meets the target, so a planned study keeps its promise by construction, and `Study.check_promise` computes the same again
from what the file states.

**Two studies with one budget.** The first finds centre and scale of the columns, the second trains on columns scaled by it.
What a coalition has seen in the end is the noisy sum of the first study and the noisy sums of the second, which depend on the
first one's answer: an adaptive composition, docs/proofs/learning.md#scaling-on-peers. Whether there is a second study, and of what
size, may be chosen after looking at the first; so a party's limit is a filter (`netdp.privacy.Filter`), and here the same is asked
beforehand: both together fit a limit of (ε, δ):

    μ² of (ε, δ)  =  share · μ²   the scaling: ε₁ at δ         (1 − share) · μ²   the training: a first guess of ε₂ at δ

and ε₂ is lowered until the smallest limit that admits both is at most ε at δ. Only this last figure is stated.

**Whose word it is.** What the first study cost is computed from what the second states of it. A party that took part holds its
entry, and its peer refuses a training that states less (`check_paid`). A party whose ledger holds no entry of the study that is
named cannot tell: it may have taken no part, or another study may be named than the one that it paid for. That is said where it
signs, where it runs, and in the card (`unheld_words`).

**The share** is a tenth unless it is stated otherwise. Measured at ε = 1, records, 5 to 10 parties
(`python benchmarks/centring.py`): where ranges are fair, any share from 1 to 40 % of μ² gives the same accuracy within a point;
where columns fill a small part of their ranges, less than 5 % costs several points. A tenth makes the noise of training 5 % larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from netdp.errors import InvalidValue, Refused
from netdp.families import KINDS
from netdp.graphs.graph import Graph
from netdp.graphs.spec import parse
from netdp.numerics.arrays import rounded_down, rounded_up
from netdp.peers.events import Sentence, Statement
from netdp.peers.kinds import RUNNING, Wish
from netdp.peers.ledger.entries import Entry, total
from netdp.peers.ledger.losses import equal_together, seen
from netdp.peers.records import Misfit
from netdp.peers.study.scaling import ScalingTask
from netdp.peers.study.sections import Privacy, is_fixed
from netdp.peers.study.study import Study
from netdp.peers.study.task import Task
from netdp.peers.study.training import AnyTask, Training
from netdp.privacy.filters import least_limit
from netdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from netdp.protocols.grid import NOISE_LAWS

SHARE = 0.1
"""Of μ², for centre and scale."""

_DIGITS = 6


def scaling_epsilon(epsilon: float, delta: float, share: float = SHARE) -> float:
    """What a scaling study may promise if it and the training after it are to keep (ε, δ) together.

    >>> scaling_epsilon(1.0, 1e-6)
    0.291197
    """
    if not 0 < share < 1:
        raise InvalidValue(f"the share of the budget for scaling lies between 0 and 1, got {share!r}; 0.1 is usual")
    return rounded_down(float(gaussian_epsilon(math.sqrt(share) * float(gaussian_mu(epsilon, delta)), delta)), _DIGITS)


def plan_scaling(
    name: str, task: ScalingTask, names: Sequence[str], *, epsilon: float, delta: float, share: float = SHARE, **options: Any
) -> Study:  # fmt: skip
    """A draft of the first study: its share of (ε, δ); options as for `Study.plan`."""
    return Study.plan(name, task, names, epsilon=scaling_epsilon(epsilon, delta, share), delta=delta, **options)


def plan_training_after(
    name: str, task: Training, names: Sequence[str], *, epsilon: float, delta: float, **options: Any
) -> Study:
    """A draft of the second study: what the scaling of its columns has left of (ε, δ); options as for `Study.plan`."""
    if task.scaled is None:
        raise InvalidValue(
            "a total is for a training whose columns a scaling study has scaled, and this schema names none; promise epsilon"
        )
    colluders = 1 if options.get("colluders") is None else options["colluders"]
    spent = float(task.scaled.curve(task.ranged, colluders).epsilon(delta))
    left = float(gaussian_mu(epsilon, delta)) ** 2 - float(gaussian_mu(spent, delta)) ** 2
    if not left > 0:
        raise InvalidValue(
            f"the scaling study has spent epsilon = {spent:.4g} at delta = {delta:g}, and {epsilon:g} is promised for both: "
            "nothing is left to train with; promise more"
        )
    own = float(gaussian_epsilon(math.sqrt(left), delta))
    for _ in range(50):
        study = Study.plan(name, task, names, epsilon=rounded_down(own, _DIGITS), delta=delta, **options)
        found = total_epsilon(study)
        if found <= epsilon:
            return study
        own *= min(epsilon / found, 1 - 1e-5) * (1 - 1e-5)
    raise InvalidValue(
        f"no training was found that keeps epsilon = {epsilon:g} with what scaling has spent; promise more"
    )


def total_epsilon(study: Study, colluders: int | None = None) -> float:
    """The smallest limit at the study's δ that admits a training and the study that scaled its columns, against so many parties."""
    task, against = study.task, study.privacy.colluders if colluders is None else colluders
    if not isinstance(task, Training) or task.scaled is None:
        raise InvalidValue(f"the study {study.name!r} names no scaling study; its own promise is all there is")
    own = seen(study.running.loss(tuple(range(study.n)), 0), study.names, study.names[0], against)
    return least_limit(equal_together([*task.scaled.releases(task.ranged, against), own]), study.privacy.delta)


def scaled_facts(study: Study) -> dict[str, Any] | None:
    """What went before a training, as plain values: which study, what it cost, and what both cost together; None if nothing did."""
    task = study.task
    if not isinstance(task, Training) or task.scaled is None:
        return None
    terms = study.privacy
    spent = float(task.scaled.curve(task.ranged, terms.colluders).epsilon(terms.delta))
    return {
        "study": task.scaled.study, "epsilon": spent, "delta": terms.delta, "total": total_epsilon(study),
        "against": study.running.who(terms.colluders),
    }  # fmt: skip


def check_paid(study: Study, ledger: Callable[[bytes], Iterable[Entry]]) -> None:
    """Refuse a training that states less for the scaling of its columns than this party's ledger holds for it.

    ledger : the entries of a study, by its hash. A party that has none is not refused: see `unheld_words`.
    """
    task, terms = study.task, study.privacy
    if not isinstance(task, Training) or task.scaled is None:
        return
    entries = list(ledger(bytes.fromhex(task.scaled.study)))
    spent = float(total(entries, terms.colluders, task.unit).epsilon(terms.delta))
    stated = float(task.scaled.curve(task.ranged, terms.colluders).epsilon(terms.delta))
    if not spent <= stated * (1 + 1e-9):
        raise Refused(
            f"the study {study.name!r} states that the scaling of its columns cost at most epsilon = {stated:.4g}, and the ledger "
            f"of this party holds {spent:.4g} for that study; make the schema anew from its result: netdp study schema --scaled-by"
        )


def unheld_words(study: Study, ledger: Callable[[bytes], Iterable[Entry]]) -> Statement | None:
    """That a ledger holds nothing of the study which is said to have scaled the columns, in a sentence; None if it does."""
    task = study.task
    if not isinstance(task, Training) or task.scaled is None or list(ledger(bytes.fromhex(task.scaled.study))):
        return None
    return Sentence.SCALING_NOT_HELD(study=task.scaled.study[:16])


def scaled_words(found: dict[str, Any]) -> str:
    """The same in a sentence; figures are rounded up.

    >>> scaled_words({"study": "ab" * 32, "epsilon": 0.28724, "delta": 1e-6, "total": 0.99999})
    'Centres and scales are of the study abababababababab…, which has cost epsilon = 0.2873 at delta = 1e-06; both together: 1'
    """
    return (
        f"Centres and scales are of the study {found['study'][:16]}…, which has cost epsilon = "
        f"{rounded_up(found['epsilon'], 4):g} at delta = {found['delta']:g}; both together: {rounded_up(found['total'], 4):g}"
    )


LEARNING = "masked-descent"
"""What trains a model."""


def kind_for(word: str | None, trains: bool) -> str:
    """What runs where this word is asked for: "gossip" trains a model by gossip descent; the usual kinds where none is.

    >>> kind_for(None, True), kind_for("gossip", True), kind_for("gossip", False)
    ('masked-descent', 'gossip-descent', 'gossip')
    """
    if word is None:
        return LEARNING if trains else KINDS[0]
    descent = f"{word.removesuffix('-sum')}-descent"
    return descent if trains and descent in KINDS else word


def plan(
    name: str,
    task: AnyTask,
    names: Sequence[str],
    *,
    graph: str | Graph,
    epsilon: float,
    delta: float,
    colluders: int | None = None,
    attempts: int = 1,
    absent: int = 0,
    kind: str | None = None,
    timing: dict[str, float] | None = None,
    nonce: str = "",
    curator: str | None = None,
    **options: Any,
) -> Study:
    """A draft for these parties whose certified loss meets ε at δ against any `colluders` of them, with the least noise.

    graph : who talks to whom: a text such as "ring:16" or "regular:16,6,seed=1", or a `Graph`, in the order of the names.
        Graphs with chance in them are written out edge by edge.
    colluders : as few as the kind allows, by default: one, or none besides a curator.
    kind : what is run; masked sums by default, and masked descent to train a model.
    attempts, absent : how often a party may publish, and how many parties may be missing from an attempt, for kinds that
        allow it. The noise is chosen so that the promise covers all of it.
    curator : the name of the curator, for kinds that have one.
    options : what the kind alone understands (`Kind.options`), such as spread="average" of masked sums, or law="laplace".
        law="best" takes the law of the noise under which the answer errs less.
    """
    kind = kind_for(kind, isinstance(task, Training))
    if kind not in RUNNING:
        raise InvalidValue(f"unknown protocol {kind!r}; choose one of {', '.join(KINDS)}")
    running = RUNNING[kind]
    colluders = running.least_colluders if colluders is None else colluders
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in running.options:
            whose = [other for other, made in RUNNING.items() if key in made.options]
            belongs = f"belongs to {' and '.join(whose)}, not to {kind}" if whose else "is no option of any protocol"
            raise InvalidValue(f"{key}={given[key]!r} {belongs}; leave it out")
    try:  # nonsense is refused before any noise is looked for
        Privacy(epsilon=epsilon, delta=delta, colluders=colluders, attempts=attempts, absent=absent)
    except Misfit as problem:
        raise Misfit(("privacy", *problem.place), problem.problem) from None
    running.check_task(task)
    if given.get("law") == "best":
        rest = {name: value for name, value in options.items() if name != "law"}
        common: dict[str, Any] = {
            "graph": graph, "epsilon": epsilon, "delta": delta, "colluders": colluders, "attempts": attempts, "absent": absent,
            "kind": kind, "timing": timing, "nonce": nonce, "curator": curator,
        }  # fmt: skip
        return best_of(by_law(name, task, names, **common, **rest))
    if given.get("law") == "laplace" and isinstance(task, Task):
        task = task.under("laplace")
    fixed = isinstance(graph, str) and is_fixed(graph)
    made = parse(graph) if isinstance(graph, str) else graph
    if made.n != len(names):
        raise InvalidValue(f"the graph {made.name} has {made.n} nodes, and there are {len(names)} parties")
    edges = [[names[u], names[v]] for u, v in made.edges().tolist()]
    if curator is not None and not running.has_curator:
        raise InvalidValue(f"curator={curator!r}: {kind} has none; leave it out")
    fields: dict[str, Any] = {
        "name": name, "nonce": nonce, "task": task.model_dump(mode="json", by_alias=True),
        "privacy": {"epsilon": epsilon, "delta": delta, "colluders": colluders, "attempts": attempts, "absent": absent},
        "network": {"graph": graph} if fixed else {"edges": edges},
        "timing": timing or {}, "party": [{"name": one} for one in names],
    }  # fmt: skip
    if running.has_curator:
        fields["curator"] = {"name": "curator" if curator is None else curator}
    wish = Wish(task, made, epsilon, delta, colluders, attempts, absent, given)
    # With noise that is surely drawable, so that everything else is checked before the search starts.
    rough = Study(**fields | {"protocol": running.start(wish)})
    return rough.replace(protocol=rough.running.least())


def by_law(name: str, task: AnyTask, names: Sequence[str], **options: Any) -> dict[str, Study]:
    """The study under each law of noise that its kind and its question know; options as for `plan`.

    >>> from netdp.peers.study import Task
    >>> task = Task(kind="mean", unit="record", column="minutes", bounds=(0, 120), max_records=1000)
    >>> found = by_law("waits", task, list("abcde"), graph="complete:5", epsilon=1.0, delta=1e-6)
    >>> {law: round(size_of(study)) for law, study in found.items()}             # of N records: 1/N of it; a curator's 170
    {'gaussian': 567, 'laplace': 190}
    """
    laws = NOISE_LAWS if isinstance(task, Task) else NOISE_LAWS[:1]
    return {law: plan(name, task, names, **options, law=law) for law in laws}


def best_of(studies: Mapping[str, Study]) -> Study:
    """Of studies that ask the same, the one whose answer errs less."""
    return min(studies.values(), key=size_of)


def size_of(study: Study) -> float:
    """The error of the answer, for comparison: for one record where it depends on their number, else that of the total."""
    noise, task = study.noise(), study.task
    error = task.error(noise, study.n, records=1)
    return noise if error is None else error
