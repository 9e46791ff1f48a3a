"""What a party's own policy says of a study, before its owner signs: would it be allowed, and what would be left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netdp.peers.ledger.policy import Verdict
    from netdp.peers.study import Study


def policy_verdict(study: Study, home: Path, name: str) -> tuple[dict[str, Any] | None, list[str]]:
    """As plain values and in words; nothing for somebody who hands in no data.

    It is said, and nothing is refused: a limit may be changed before the day. A peer refuses then what is not allowed.
    """
    from netdp.errors import NetdpError, Refused
    from netdp.peers.ledger.policy import Policy, PolicyRefused
    from netdp.peers.ledger.store import Store

    if name not in study.names:
        return None, []
    file, ledger = home / "policy.toml", home / "peer.db"
    try:
        policy = Policy.read(file)
        entries = []
        if ledger.exists():
            with Store.open(ledger, read_only=True) as store:
                entries = store.entries()
        found, problem = policy.check(study, entries, study.index(name)), None
    except PolicyRefused as refused:
        found, problem = list(refused.verdicts), "at least one limit would be broken"
    except Refused as refused:
        return {"allowed": False, "reason": str(refused)}, ["Your policy", f"  WOULD NOT ALLOW IT: {refused}."]
    except NetdpError as unread:
        return {"allowed": None, "reason": str(unread)}, ["Your policy", f"  cannot be asked: {unread}."]
    said = "would allow it" if problem is None else f"WOULD NOT ALLOW IT, {problem}: `netdp peer run` would refuse"
    lines = [f"Your policy ({file}) {said}; epsilon at delta = {policy.delta:g}:", *map(_line, found)]
    return {"allowed": problem is None, "delta": policy.delta, "limits": [one.to_dict() for one in found]}, lines


def unheld_lines(study: Study, home: Path, name: str) -> list[str]:
    """That this party's ledger does not hold the study which is said to have scaled the columns; nothing if it does."""
    from netdp.errors import NetdpError
    from netdp.peers.ledger.store import Store
    from netdp.peers.study.in_two import unheld_words

    ledger = home / "peer.db"
    if name not in study.names:
        return []
    try:
        if not ledger.exists():
            said = unheld_words(study, lambda study: ())
        else:
            with Store.open(ledger, read_only=True) as store:
                said = unheld_words(study, store.entries_of)
    except NetdpError as unread:
        if (said := unheld_words(study, lambda study: ())) is not None:
            said = (
                f"whether this party took part in the study that is named for centres and scales is not known: {unread}"
            )
    return [] if said is None else [f"WARNING: {said}."]


def _line(verdict: Verdict) -> str:
    """One limit: what would be used of it, and what would be left.

    >>> from netdp.peers.ledger.policy import Limit, Verdict
    >>> limit = Limit(against=1, per="year", epsilon=3.0)
    >>> print(_line(Verdict(limit, limit.words("2026"), 1.0, 0.5, 1.2)))
      any 1 party, in 2026       1.20 of 3.00 used, 0.500 of it before; 1.8 left
    >>> print(_line(Verdict(limit, limit.words("2026"), 1.0, 2.5, 3.15)))
      any 1 party, in 2026       3.15 of 3.00 used, 2.50 of it before; 0.150 TOO MUCH
    """
    from netdp.numerics.rounding import rounded_down
    from netdp.privacy.readable import readable

    before = f", {readable(verdict.before)} of it before" if verdict.before else ""
    left = verdict.limit.epsilon - verdict.together
    then = f"{rounded_down(left, 3):.3g} left" if verdict.holds else f"{readable(verdict.over)} TOO MUCH"
    return (
        f"  {verdict.words:<26} {readable(verdict.together)} of {readable(verdict.limit.epsilon)} used{before}; {then}"
    )
