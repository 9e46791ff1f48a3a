"""One word for every reason: what logs and metrics say instead of a sentence.

A sentence that was made for its owner's eyes may quote anything, a number of its data included, and a neighbour has a hand
in some of them. So no log line and no metric holds a sentence. They hold one of the words below, and a sentence that is
not known becomes "other". The words are a closed list: nothing that anybody sends can make a new one.
"""

from __future__ import annotations

import re

_KNOWN: tuple[tuple[str, str], ...] = (
    # what a neighbour said and was ignored for
    ("not-a-message", r"is no netdp message"),
    ("unknown-kind", r"of no known kind|kind \d+, which (this|no)"),
    ("second-hello", r"a second Hello"),
    ("before-hello", r"before the Hello"),
    ("format", r"speaks? (the )?formats? "),
    ("other-study", r"runs another study"),
    ("implausible", r"belongs to no attempt or party"),
    ("signature", r"the signature under .* is not its author's"),
    ("wrong-link", r"came over a link of"),
    ("not-due", r"is of no attempt that is on its way"),
    ("bad-vote", r"voted for (a|the) roster|is no list of parties|is not in increasing order"),
    ("old-link", r"link that was given up"),
    ("two-things-said", r"the first stands|not signed by it$"),
    ("other-answer", r"holds another answer"),
    ("flood", r"sends nonsense"),
    ("unproved-claim", r"shows no signature of ours"),
    ("forged-step", r"somebody (cheats|forges|invents|sent too much)|refused: (a |the )?token|nobody can have filled"),
    # who was turned away before a frame of it was read
    ("certificate", r"certificate"),
    ("not-a-neighbour", r"is not a neighbour"),
    ("dial-order", r"must be dialled by"),
    ("not-a-link", r"is not a link"),
    # how a link ended
    ("replaced", r"replaced by a newer connection"),
    ("closed-here", r"closed here"),
    ("receiver-failed", r"the receiver failed"),
    ("frame-refused", r"a frame was refused|larger than max|over the limit of"),
    ("ended-there", r"ended by the other end|the connection ended|is closing"),
    ("unreachable", r"cannot be reached|did not answer|failed to connect|connection refused|no link to"),
    ("connection", r"reset|keepalive|ping timeout|GOAWAY|UNAVAILABLE|CANCELLED|cancelled|socket|[Tt]ransport|broken pipe"),
    # what happened to an attempt
    ("taken-back", r"taken back from"),
    ("stuck", r"is stuck"),
    ("given-up", r"is given up"),
    ("numbers-lost", r"lost on their way"),
    ("went-on-without", r"go on without|goes to another|ended without|handed nothing over|stayed without an answer"),
    ("worse-than-promised", r"worse than (was )?promised"),
    # why a study ended, or a peer failed
    ("attempts-used-up", r"attempts that the study allows are used up"),
    ("too-few", r"and the study wants at least"),
    ("left-out", r"went on without this party"),
    ("broke-off", r"broke off|attempts failed|came to nothing|did not come"),
    ("models-differ", r"starts from another model"),
    ("left", r"has left the training"),
    ("older-folder", r"older than what was sent|shows our signature under"),
    ("scaling-not-held", r"took no part in the study"),
    ("data-changed", r"have changed since"),
    ("no-gradient", r"no finite gradient"),
    ("keys-in-use-elsewhere", r"used? in (two places|use elsewhere)|in use elsewhere|another contribution"),
    ("already-running", r"is in use by|very same keys"),
    ("memory", r"was restored on|entered by hand|is gone, and the keys"),
    ("disk", r"cannot be (written|opened|read)|disk"),
    ("policy", r"the policy of"),
    ("stopped", r"stopped"),
)  # fmt: skip
_PATTERNS = tuple((word, re.compile(pattern)) for word, pattern in _KNOWN)

OTHER = "other"
REASONS = frozenset(word for word, _ in _KNOWN) | {OTHER}
"""Every word there is."""

_LONGEST = 2000


def reason_of(sentence: object) -> str:
    """The word for a sentence.

    >>> reason_of("the signature under vote 0 of party 3 in attempt 1 is not its author's")
    'signature'
    >>> reason_of("minutes = 17.25 in row 4 is out of bounds")
    'other'
    """
    text = str(sentence)[:_LONGEST]
    return next((word for word, pattern in _PATTERNS if pattern.search(text)), OTHER)
