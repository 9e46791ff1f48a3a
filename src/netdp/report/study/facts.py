"""Everything that the report on a study says, as plain values: the page prints these, and `netdp report --json` does.

What `netdp study explain` says comes from there (`netdp.peers.study.explanation`); what is added is what a reader wants who was not
there: who has signed, what each number means, against whom it holds, what really happened, what an audit found, who sees to each
assumption, and what computed it.

**Who sees to it** that an assumption is true: the code of an honest party's own peer, an owner, or nobody.

These are the tables of docs/proofs/peers.md#real-peers and #training-on-peers, found by the words of the assumption. "Code"
means: the peer of an honest owner does it whatever it hears. An assumption that no rule knows is said to be somebody's duty,
never to be enforced.

**What computed it**: this program, the libraries that its numbers rest on, Python and the machine's kind.
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netdp
from netdp.errors import FileFormatError
from netdp.peers.study import signatures
from netdp.peers.study.digest import terms_of
from netdp.peers.study.explanation import cautions, facts, losses_of, often, sections
from netdp.privacy.guarantee import Unit
from netdp.report.run import coalition_sizes
from netdp.report.study import accuracy
from netdp.report.study.accuracy import comparison
from netdp.report.study.record import happened

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

CODE, BELIEF = "code", "code, and mathematics believed"

OWNERS, DRAFTER = "the other owners", "who drafts and signs"

NOBODY, STATED = "nobody: not covered", "nothing to enforce"


@dataclass(frozen=True)
class Enforced:
    """Who sees to it, and how."""

    by: str
    how: str


UNKNOWN = Enforced(
    "the owners",
    "Not among those that code is known to enforce: whoever takes part must see to it, or ask the others to.",
)

_RULES: tuple[tuple[str, str, str], ...] = (
    # what a party adds
    (r"gradient has at most", CODE, "Every gradient is clipped and checked in whole numbers before it is added."),
    (r"clip before rounding|clipped before it is rounded|contribution is bounded|two values of one contribution differ", CODE,
     "The party's own peer clips after every computation and rounds by the protocol's own steps."),
    (r"takes part with probability", CODE,
     "Coins are words of a stream cipher under the party's secret; zero is published for who is not drawn. How long that "
     "takes is "
     "covered by nobody."),
    (r"a coin of its owner puts every row", CODE, "One coin per row and attempt, from the party's secret."),
    (r"contributes at most once, under keys and seeds", CODE,
     "One's own peer: all that it says is durable before it leaves and is said once, shares are checked when they come, two "
     "phases of a ballot lock one set, and with the reveal the secrets are erased from the store. That no more pool than the "
     "study says is nobody's to enforce: whoever signs must believe it."),
    (r"publishes (at most|once)", CODE,
     "One transaction writes the contribution and its cost; the database refuses a second one; pads and noise are bound to "
     "study, "
     "attempt and roster, votes to one roster per attempt."),
    (r"^a party's data are fixed beforehand; no step", CODE,
     "A keyed hash of the rows is written with the ledger's entry and compared before the first step; a step is "
     "written down before "
     "it leaves, and its noise is a function of the numbers that it hides."),
    (r"gradient in floating point is within", NOBODY,
     "Doubles are some 10⁻¹⁴ off; nothing checks it. Without it local DP holds still, which is what is promised of gossip."),
    (r"a gradient may depend on|starting models? do", CODE,
     "A gradient is computed from own rows and from the model at hand; the first model is in the study."),
    (r"does not increase distances", CODE,
     "The step of a built-in model is compared with the longest that does not; of a model that is code nothing is assumed."),
    (r"somebody's neighbour sees all|only local DP is claimed|whoever publishes its model counts", STATED,
     "It says what is seen, and is in the numbers."),
    (r"(records|data) are fixed beforehand; .*gradient", CODE,
     "A keyed hash of the rows is written with the ledger's entry and compared before every first step; gradients are "
     "computed "
     "from own rows and from sums that all can hold."),
    (r"^values are fixed", CODE,
     "What a party adds is worked out once, before its first message; a peer whose data have changed since refuses to go "
     "on."),
    (r"what a user adds does not depend on how often", CODE,
     "It is written down before the first visit; noise is a function of the row's key and of token and step."),
    # noise and secrecy
    (r"discrete Gaussian|discrete Laplace|drawn from a perfect random source|drawn from a law that is as private", BELIEF,
     "An exact sampler in whole numbers on words of ChaCha20 under a key of HMAC-SHA256; these are believed to look random "
     "to who "
     "lacks the "
     "key."),
    (r"^a pad, and the second mask", BELIEF,
     "X25519, shares over a group of prime order, HKDF-SHA256, ChaCha20 and Ed25519, believed to be what they are held to be; what "
     "is revealed follows from the sealed set, and is revealed once."),
    (r"own share of Laplace noise", BELIEF,
     "An exact sampler in whole numbers on words of ChaCha20 under a key that is fresh, random and erased; these are believed to "
     "look random to who lacks the key."),
    (r"^a pad is uniform", BELIEF,
     "X25519, HKDF-SHA256 and ChaCha20, believed to be what they are held to be; no message carries a pad and none is "
     "written down."),
    (r"reports are sealed", BELIEF, "HPKE to the curator's key, all reports padded to one length."),
    (r"^every report comes from", CODE, "A report is drawn once and written down before it is sealed."),
    (r"sends exactly \d+ sealed envelopes", CODE,
     "Every honest user's own peer does; of a user that deviates nothing is known."),
    # what is public
    (r"are public and chosen without regard", DRAFTER,
     "Stated in the study, which all sign; that they do not depend on data is the drafter's duty."),
    (r"^all graphs are fixed beforehand and public$", CODE,
     "They follow from the seed and the links in the study, which all sign: every peer draws them by the same hash."),
    (r"^graphs?, .*public$", CODE, "Stated in the study, which all sign; nothing is computed from them but checks."),
    (r"centres and scales of the columns are those of the study", CODE,
     "A party that took part in that study refuses a training that states less than its ledger holds; who took no part "
     "relies on what is "
     "stated."),
    (r"centres and scales of the columns are public", DRAFTER, "Whoever signs must know where they come from."),
    (r"^the module of", DRAFTER,
     "Only a file with the signed hash is run; that it does no more than it should, whoever signs must have read."),
    (r"rows are computed at once", NOBODY, "With chunk = 1 code would see to it."),
    # company
    (r"(users|parties) follow the protocol", OWNERS,
     "One's own peer does. This protocol is proved against parties that look, not against parties that deviate."),
    (r"those who pool what they see", OWNERS, "One's own peer follows the protocol; what holds against others who do not "
     "is in the sentence."),
    (r"token is readable by its holder alone", CODE,
     "Mutual TLS, each end compared byte by byte with the certificate in the study; a holder that shows it around counts "
     "as an observer."),
    (r"closing noise|starting blanket", OWNERS,
     "The peers of the first and last holder draw it; that these keep it to themselves is assumed of their owners."),
    (r"keeps its final estimate", OWNERS, "A peer shows it to its owner only; an owner who passes it on counts as an "
     "observer."),
    (r"first holder follows from 32 bytes|each walk starts at a user", OWNERS,
     "Code draws it from everybody's bytes; the last to publish could choose, if it deviates."),
    (r"everybody is there until all tokens", OWNERS,
     "Who vanishes, and when, is up to them; what breaks off is entered in the ledger with the path told."),
    (r"^at every step, until the token", CODE,
     "A holder waits rather than skip more; that absences do not depend on whom it asks is assumed of the other owners."),
    (r"^a token that vanishes", OWNERS, "When a token vanishes must not depend on what it holds."),
    (r"moves by draws of its own|who holds nothing hands over", OWNERS, "One's own peer does; the others' peers are "
     "theirs."),
    (r"nobody is lost on the way", OWNERS,
     "What is told to be lost is counted, and the larger loss entered in the ledger; who keeps silent about it is not found out."),
    (r"the curator does not look", OWNERS, "The curator's duty."),
    # what is not covered, and what is only said
    (r"traffic analysis|as seen on the network itself|how long a party takes", NOBODY, "Who watches the network, or the "
     "clock, sees it."),
    (r"data do not fit", NOBODY, "It is seen that such a party does not take part."),
    (r"any other coalition of as many|by symmetry|one more sum|within .* in total variation|not needed|before a run nobody knows",
     STATED, "It follows from the rest, and is in the numbers."),
    (r"sees who brings it|under its own name|number of the step is public|the server sees", STATED,
     "It says what is seen, and is in the numbers."),
)  # fmt: skip


def enforced(assumption: str) -> Enforced:
    """Who sees to it that this sentence is true.

    >>> enforced("a pad is uniform, known to its two ends only, used once and never revealed").by
    'code, and mathematics believed'
    >>> enforced("the moon is full") is UNKNOWN
    True
    """
    for pattern, by, how in _RULES:
        if re.search(pattern, assumption):
            return Enforced(by, how)
    return UNKNOWN


LIBRARIES = (
    "numpy", "scipy", "numba", "networkx", "dp-accounting", "pydantic", "cryptography", "grpcio", "protobuf", "opendp", "torch",
)  # fmt: skip
"""Those whose versions are told; one that is not installed cannot have taken part."""


def versions() -> dict[str, str]:
    """Names and versions; "not installed" for libraries that are not here.

    >>> versions()["netdp"] == netdp.__version__
    True
    """
    found = {"netdp": netdp.__version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found | {"platform": f"{platform.system()} {platform.release()}, {platform.machine()}"}


FORMAT = 1

_DRAWN = 16
"""At most so many sizes of coalitions are computed for the picture."""


def report_facts(
    study: Study,
    path: Path,
    *,
    run: Path | None = None,
    audit: Mapping[str, Any] | None = None,
    with_answer: bool = False,
    now: datetime | None = None,
) -> dict[str, Any]:
    """What the report says of a study in this file.

    run          the folder of a run of it (complete studies only: `happened.study_of_run` finds the one that ran)
    audit        what `audited.read_audit` or `audited.audit_told` has found
    with_answer  whether the answer is told
    """
    losses, notes = losses_of(study)
    said = facts(study, (losses, notes))
    terms, planned = study.privacy, losses.get(study.privacy.colluders)
    rows = [
        {
            "colluders": size,
            "who": said["who"][str(size)],
            "epsilon": said["epsilon"][str(size)],
            "delta": terms.delta,
            "claim": loss.claim.value,
            "certified": loss.is_certified,
            "right_guesses": accuracy.right_guesses(float(said["epsilon"][str(size)]), terms.delta),
            "promised": terms.epsilon if size == terms.colluders else None,
            "attempts": terms.attempts,
        }
        for size, loss in losses.items()
    ]
    happening = None if run is None else happened(study, run, list(losses), with_answer=with_answer)
    protected = accuracy.COMPANY[study.settings.kind]
    return {
        "report": FORMAT,
        "written": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "file": str(path),
        "terms": terms_of(study),
        **said,
        "sections": [{"title": title, "sentences": lines} for title, lines in sections(said)],
        "cautions": cautions(said),
        "often": often(said),
        "n": study.n,
        "has_curator": study.running.has_curator,
        "network": {"name": study.graph.name, "links": study.graph.m},
        "adjacency": None if planned is None else _adjacency(planned),
        "claims": sorted({f"{loss.claim.meaning}" for loss in losses.values()}),
        "losses": rows,
        "meaning": {
            "sentences": accuracy.sentences(terms.epsilon, terms.delta, study.task.unit),
            "beliefs": [
                {"before": before, "after": accuracy.belief_after(before, terms.epsilon, terms.delta)}
                for before in accuracy.PRIORS
            ],
            "proof": list(accuracy.PROOF),
        },
        "company": {
            "against": protected.against,
            "curious": accuracy.CURIOUS,
            "malicious": accuracy.MALICIOUS,
            "promised_malicious": protected.malicious,
            "answer": protected.answer,
            "strangers": accuracy.STRANGERS,
        },
        "open": dict(accuracy.OPEN),
        "curve": _curve(study, rows),
        "accuracy": comparison(study),
        "assumed": [
            {"assumption": line, "by": who.by, "how": who.how}
            for line in said["assumptions"]
            for who in [enforced(line)]
        ],
        "references": [] if planned is None else list(planned.references),
        "references_of_meaning": list(accuracy.REFERENCES),
        "signatures": _signed(study, path),
        "happened": happening,
        "audit": None if audit is None else dict(audit),
        "versions": versions(),
    }


def _adjacency(loss: Any) -> str:
    words = loss.adjacency.meaning_for_records if loss.unit is Unit.RECORD else loss.adjacency.meaning
    return f"“{loss.adjacency.value}”, {words}"


def _curve(study: Study, rows: list[dict[str, Any]]) -> list[list[Any]]:
    """[k, ε] for the picture: more sizes than the table has, where all coalitions of one size learn the same."""
    known = {row["colluders"]: row["epsilon"] for row in rows}
    if study.running.depends_on_size_only:
        wanted = [size for size in coalition_sizes(study.smallest_roster - 1, _DRAWN) if size not in known]
        found, _ = losses_of(study, wanted)
        at = {size: loss.worst_epsilon(study.privacy.delta) for size, loss in found.items()}
        known |= {size: value if math.isfinite(value) else "inf" for size, value in at.items()}
    return [[size, known[size]] for size in sorted(known)]


def _signed(study: Study, path: Path) -> dict[str, Any]:
    """Who has signed exactly this study, by the files beside it, as `netdp study verify` tells it."""
    if not study.is_complete:
        return {"complete": False, "all": False, "signed": [], "problems": {}}
    try:
        wrong = signatures.problems(study, signatures.read_all(path))
    except FileFormatError as problem:
        return {"complete": True, "all": False, "signed": [], "problems": {"a signature file": str(problem)}}
    signed = [name for name in study.everybody if name not in wrong]
    return {"complete": True, "all": not wrong, "signed": signed, "problems": wrong}
