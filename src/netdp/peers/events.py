"""What happens to a peer, as values: every event with its fields, every reason with its code and its sentence.

A peer reports plain dictionaries of the types below, `{"event": "lost", "peer": "elm", "reason": …}`. Log, trace, status file,
metrics and studio are made from them, and from nothing else.

**Codes.** A sentence that was made for its owner's eyes may quote anything, a number of its data included, and a neighbour
has a hand in some of them. So no log line and no metric holds a sentence. They hold its code, a word of the closed list
`Code`, which whoever speaks gives together with the sentence (`Statement`): nothing that anybody sends can make a new one.
What a party and its links have to say is listed in `Sentence`; an error carries its code as `Statement` in its first
argument.

**Why nothing secret can get in.** A line is not what an event holds, but what this module asks of it: the types below list for
every event its fields, and for every field which values it takes: the name of somebody who takes part, a whole number, a
number of seconds, yes or no, a code, the key of an item (a word and whole numbers). A field that is not listed is left out; a
value that does not fit its field too, and the line says how many were (`dropped`). So answers, totals, bodies, states, noise,
keys and data have no way into a line: there is no field for them. An event that is not listed becomes a line without fields.

**A log** is what a peer does, one JSON object per line:

    {"time":"2026-11-16T16:32:50.123Z","level":"info","party":"ash","study":"a2e640f3b8b2c4e9","event":"linked","peer":"elm"}

It never ends a peer. A line that cannot be written (full disk, closed pipe) is counted, and the next one that can
says how many were lost. A file is moved aside at `SIZE` bytes, and `KEPT` old ones are kept: it takes a bounded room for ever.
Files belong to their owner alone (mode 600): who talked to whom, and when, is nobody else's business.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Protocol,
    Self,
    TextIO,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
)

from netdp.errors import InvalidValue, NetdpError

# ── reasons ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Code = Literal[
    # what a neighbour said and was ignored for
    "not-a-message", "unknown-kind", "second-hello", "before-hello", "format", "other-study", "implausible", "signature",
    "wrong-link", "not-due", "bad-vote", "old-link", "two-things-said", "other-answer", "flood", "unproved-claim", "forged-step",
    "bad-dealing",
    # who was turned away before a frame of it was read
    "certificate", "not-a-neighbour", "dial-order", "not-a-link",
    # how a link ended
    "replaced", "closed-here", "receiver-failed", "frame-refused", "ended-there", "connection",
    # what happened to an attempt
    "taken-back", "stuck", "given-up", "numbers-lost", "went-on-without",
    # why a study ended, or a peer failed
    "attempts-used-up", "too-few", "left-out", "broke-off", "out-of-reach", "models-differ", "left", "older-folder",
    "scaling-not-held", "data-changed", "no-gradient", "keys-in-use-elsewhere", "already-running", "memory", "disk", "policy",
    "stopped",
    "other",
]  # fmt: skip
"""One word for every reason."""

CODES: frozenset[str] = frozenset(get_args(Code))
"""Every word there is."""

_HARMLESS = ("closed-here", "ended-there", "replaced", "stopped")

Field = int | float | str


class Statement(str):
    """A sentence for a party's owner, with the code that stands for it where others may read, and what it was made from.

    >>> said = Sentence.GIVEN_UP(attempt=1, missing="elm", following=2)
    >>> str(said), said.code, said.fields["attempt"]
    ('attempt 1 is given up: elm missing; attempt 2', 'given-up', 1)
    """

    code: Code
    fields: Mapping[str, Field]

    def __new__(cls, sentence: str, code: Code = "other", fields: Mapping[str, Field] | None = None) -> Self:
        made = super().__new__(cls, sentence)
        made.code, made.fields = code, fields or {}
        return made


def statement_of(problem: BaseException) -> Statement:
    """What an error says, with the code that it was given; what the system says of files is the disk's.

    >>> statement_of(PermissionError("no")).code, statement_of(ValueError("minutes = 17.25 in row 4")).code
    ('disk', 'other')
    """
    said = problem.args[0] if problem.args else ""
    if isinstance(said, Statement):
        return said
    from_system = isinstance(problem, OSError) or isinstance(problem.__context__, OSError)
    return Statement(str(problem), "disk" if from_system else getattr(problem, "code", "other"))


class Sentence(Enum):
    """Everything that a party and its links have to say, with its code. Call one with its fields to say it.

    >>> Sentence.IGNORED(peer=3, problem=Sentence.SECOND_HELLO()).code
    'second-hello'
    """

    # fmt: off
    # what a neighbour said and was ignored for; the code of what quotes a problem is the problem's
    IGNORED = None, "ignored from {peer}: {problem}"
    OLD_LINK = "old-link", "it came over a link that was given up"
    SECOND_HELLO = "second-hello", "a second Hello"
    BEFORE_HELLO = "before-hello", "a {message} before the Hello"
    UNKNOWN_KIND = "unknown-kind", "something of kind {number}, which this format does not have"
    NOT_A_MESSAGE = "not-a-message", "a frame of {size} bytes is no netdp message: {problem}"
    OTHER_FORMAT = "format", "it speaks {theirs}, we speak {ours}: none in common; install a newer netdp {where}"
    OTHER_STUDY = "other-study", "it runs another study ({theirs}…, not {ours}…)"
    IMPLAUSIBLE = "implausible", "{what} of {size} bytes belongs to no attempt or party of this study"
    NOT_SIGNED = "signature", "the signature under {what} is not its author's"
    WRONG_LINK = "wrong-link", "{what} came over a link of {peer}"
    NOT_DUE = "not-due", "{what} is of no attempt that is on its way, or beyond its last round"
    NO_ROSTER = "bad-vote", "a vote of {size} bytes is no list of parties"
    UNORDERED_ROSTER = "bad-vote", "the roster {roster} is not in increasing order"
    STRANGE_ROSTER = "bad-vote", "{author} voted for the roster {roster}, which it cannot be part of"
    SMALL_ROSTER = "bad-vote", "{author} voted for a roster of {size}; the study allows no fewer than {fewest}"
    SECOND_UNSIGNED = "two-things-said", "{what}, not signed by it"
    SECOND = "two-things-said", "{what}; the first stands"
    PROVED_CHEAT = "two-things-said", "refused: {what}; the first stands, both are kept as proof that it cheats"
    OTHER_ANSWER = "other-answer", "{peer} holds another answer to attempt {attempt}: somebody cheats"
    SIGNED_ANOTHER = "other-answer", "{name} signed another answer to attempt {attempt} than the one that is here: it cheats"
    BAD_DEALING = "bad-dealing", (
        "{name} dealt shares in attempt {attempt} that cannot be right: it cheats, and is left out of the next attempt"
    )
    SAME_DEALING = "bad-dealing", (
        "another party dealt in attempt {attempt} what {name} dealt: one copied the other, and both are left out of the next one"
    )
    NOT_DEFENDED = "bad-dealing", (
        "somebody complained of the share that {name} dealt to it in attempt {attempt}, and {name} has not shown that it is right: "
        "{name} is left out of the next attempt"
    )
    DEALER_CHEATED = "bad-dealing", (
        "the shares that {name} dealt in attempt {attempt} do not give the keys that it published: it cheats"
    )
    FLOOD = "flood", "it sends nonsense, or the same again and again; not read for {seconds:g} s ({counted})"
    UNPROVED = "unproved-claim", (
        "{name} says that it holds {kind} {index} of ours in attempt {attempt} and shows no signature of ours: not believed"
    )
    # who was turned away, and how links end
    NO_CERTIFICATE = "certificate", "a caller without a certificate"
    UNLISTED_CERTIFICATE = "certificate", "a caller whose certificate is not in the study's list"
    OTHER_CERTIFICATE = "certificate", (
        "{where} does not show the certificate of the study's list; is another party there?"
    )
    EXPIRED = "certificate", "the certificate of {name} expired on {date} UTC; the study needs its new card"
    NOT_YET_GOOD = "certificate", "the certificate of {name} is good from {date} UTC on; check this machine's clock"
    NO_NEIGHBOUR = "not-a-neighbour", "{name} is not a neighbour of {me}"
    DIAL_ORDER = "dial-order", "{name} must be dialled by {me}: the smaller number dials"
    NO_LINK = "not-a-link", "{name} opened a stream that is not a link of this version of netdp"
    REPLACED = "replaced", "replaced by a newer connection"
    CLOSED_HERE = "closed-here", "closed here"
    ENDED_THERE = "ended-there", "ended by the other end"
    CONNECTION_ENDED = "ended-there", "the connection ended"
    RECEIVER_FAILED = "receiver-failed", "the receiver failed: {problem}"
    FRAME_REFUSED = "frame-refused", "a frame was refused: {problem}"
    CONNECTION_RESET = "connection", "connection reset"
    CRASHED = "connection", "crashed"
    STOPPED = "stopped", "stopped"
    # what happened to an attempt
    TAKEN_BACK = "taken-back", "taken back from {peer}: our own {kind} of attempt {attempt}"
    STUCK = "stuck", "attempt {attempt}: averaging is stuck, contributions are passed on instead"
    GIVEN_UP = "given-up", "attempt {attempt} is given up: {missing} missing; attempt {following}"
    NUMBERS_LOST = "numbers-lost", "attempt {attempt}: the numbers got lost on their way; who is still here?"
    REPORTS_LOST = "numbers-lost", "{lost} of {parties} reports were lost on their way, or dropped by the curator"
    WITHOUT_PARTY = "went-on-without", "round {round} of {rounds} and all later ones go on without {party}"
    TO_ANOTHER = "went-on-without", "{name} does not answer: token {token} goes to another"
    NOT_THROUGH = "went-on-without", (
        "ended without {absent} parties (number {some}), which did not say that they were through: what they held is missing "
        "from the answer"
    )
    NOTHING_HANDED_OVER = "went-on-without", "{silent} of {parties} users handed nothing over"
    UNHEARD = "went-on-without", "{exchanges} exchanges stayed without an answer: they may be torn"
    FEW_OFFERS = "other", (
        "only {offers} of {planned} exchanges could be offered, for nobody was there: the estimate may be far from the mean"
    )
    FEW_MEETINGS = "other", (
        "only {met} of {offers} offers were taken up, for neighbours were busy or away: the estimate may be further from the "
        "mean than predicted; a longer pace helps where links are slow"
    )
    NO_REPORT = "other", "no report arrived that can be read: there is no answer"
    DROPPED = "other", "dropped: {counted}"
    # steps that no honest party makes
    TOO_MUCH = "forged-step", "numbers have grown beyond what honest parties reach: somebody sent too much"
    INVENTED = "forged-step", (
        "{reports} reports in one hand, of {most} parties: somebody invents reports; {most} are kept"
    )
    RELEASED_TWICE = "forged-step", "token {token} was released by {authors}: somebody cheats, and there is no answer"
    OVERFULL = "forged-step", "{name} released a token that nobody can have filled"
    STRAY_TOKEN = "other", "ignored: {kind} {index} of {name}: {problem}"
    IMPOSSIBLE_TOKEN = "forged-step", (
        "refused: token {token} of {name} holds what {visits} visits cannot have added up to"
    )
    MANY_VISITS = (
        "forged-step",
        ("refused: token {token} of {name}: {visits} visits are more than chance brings; somebody forges tokens"),
    )
    BAD_HOP = "forged-step", "refused: the token of hop {hop}: {problem}"
    NO_HEAP = "forged-step", "refused: a token after {hops} hops holds {answers} answers, and this one does not"
    NO_GRADIENT = "no-gradient", "iteration {iteration}: {rows} own rows have no finite gradient and count as zero"
    # why a study ends
    USED_UP = "attempts-used-up", "all {attempts} attempts that the study allows are used up"
    USED_UP_WITHOUT = "attempts-used-up", (
        "all {attempts} attempts that the study allows are used up; missing: {missing}"
    )
    TOO_FEW = "too-few", (
        "{there} of {n} parties took part in attempt {attempt} (missing: {missing}), and the study wants at least {fewest}"
    )
    LEFT_OUT = "left-out", "the others went on without this party after attempt {attempt}"
    LEFT_OUT_UNTOLD = (
        "left-out",
        ("the others went on without this party after attempt {attempt}, and their answer did not come"),
    )
    NOTHING_CAME = "broke-off", "attempt {attempt} of the parties came to nothing"
    NOBODY_CAME = "broke-off", "the parties did not come"
    BROKE_OFF = "broke-off", (
        "the way of the numbers broke off after {there} of {n} parties took part in attempt {attempt}, and this protocol has "
        "no second attempt"
    )
    ALL_FAILED = "broke-off", "{attempt} attempts failed; missing in the last: {missing}"
    STEP_MISSING = "broke-off", (
        "iteration {iteration} of {iterations}: the step of {names} did not come in time; {spent}"
    )
    MODELS_DIFFER = "models-differ", (
        "step {iteration} of {names} starts from another model than ours: somebody has published two different steps, or a "
        "machine computes otherwise; {spent}"
    )
    LEFT = "left", "this party has left the training after {made} of {iterations} steps, for good"
    CONTRIBUTION_UNKNOWN = (
        "older-folder",
        ("{peer} shows our signature under a contribution to attempt {attempt}, which this folder does not know"),
    )
    STEP_UNKNOWN = (
        "older-folder",
        ("{peer} shows our signature under step {index}, which this folder does not know"),
    )
    CONTRIBUTION_GONE = "older-folder", (
        "others hold our contribution to attempt {attempts}, and this folder does not: it is older than what was sent from it, "
        "and its ledger lacks what that cost. Put the newer folder back, or enter the study with netdp ledger admit"
    )
    STEP_GONE = "older-folder", (
        "others hold step {index} of this party, and its folder knows of {known} iterations only: it is older than what was "
        "sent from it, and what happened since is gone; {spent}"
    )
    TWO_OF_OURS = "keys-in-use-elsewhere", (
        "{peer} holds another {kind} of attempt {attempt} signed by this very party: its keys are in use elsewhere, or "
        "its folder was restored from a backup after it had sent; stopped"
    )
    OLDER_IN_ATTEMPT = (
        "older-folder",
        "{peer} holds our own {kind} of attempt {attempt}, which this folder does not know: it is older than what was sent "
        "from it, and says nothing more in this attempt",
    )
    NO_SEAL = "broke-off", (
        "attempt {attempt}: too few parties answered to agree on whose contributions are added up; nothing was opened here"
    )
    NOT_OPENED = "broke-off", (
        "attempt {attempt}: {came} parties revealed their shares, {needed} are needed to open the sum; those of others never came"
    )
    OUT_OF_REACH = "out-of-reach", (
        "the sum of attempt {attempt} is none that {parties} parties can have handed in: it lies outside by {times:.3g} times all "
        "that their noise can do; somebody handed in numbers that it cannot have, and the answer is withheld"
    )
    SCALING_NOT_HELD = "scaling-not-held", (
        "this party took no part in the study {study}… which is named for centres and scales, by its ledger: what both cost "
        "together is what the study states"
    )
    # fmt: on

    def __call__(self, **fields: Field) -> Statement:
        code, sentence = self.value
        problem = fields.get("problem")
        if code is None:
            code = problem.code if isinstance(problem, Statement) else "other"
        return Statement(sentence.format_map(fields), code, fields)


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────────────

KINDS = frozenset((
    "vote", "contribution", "fallback", "total", "state", "token", "offer", "accept", "bundle", "through", "step",
    "keys", "dealing", "prepare", "commit", "reveal", "answer", "proof", "complaint", "defence",
    "hello", "announce", "pull", "done", "remark",
))  # fmt: skip
"""Every kind of message that a line may name (`netdp.peers.messages`, which is slow to load)."""

LISTED = 64
"""Items of one frame that are named; of more, how many."""

_MOST = 2**40

_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}")

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}([.+-]?[a-z]{1,5}[0-9]{0,4})?")


def _name(value: Any) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ValueError


def _version(value: Any) -> str:
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    raise ValueError


def _count(value: Any) -> int:
    if type(value) is int and 0 <= value <= _MOST:
        return value
    raise ValueError


def _length(value: Any) -> int | None:
    """How many, of a list; a number is one already. Nothing of an empty list."""
    return (len(value) or None) if isinstance(value, list | tuple) else _count(value)


def _yes(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise ValueError


def _number(value: Any) -> float | str:
    """Seconds, or an ε: six significant digits; "inf" from a thousand million on."""
    if type(value) not in (int, float) or math.isnan(value) or value < 0:
        raise ValueError
    return float(f"{value:.6g}") if value < 1e9 else "inf"


def _code(value: Any) -> str:
    if isinstance(value, Statement):
        return value.code
    if isinstance(value, str):
        return value if value in CODES else "other"
    raise ValueError


def _kind(value: Any) -> str:
    if isinstance(value, str) and value in KINDS:
        return value
    raise ValueError


def _items(value: Any) -> list[list[Any]]:
    """Keys of items: a kind, and three whole numbers: attempt, author, index."""
    if not isinstance(value, list) or len(value) > LISTED:
        raise ValueError
    return [[_kind(kind), _count(attempt), _count(author), _count(index)] for kind, attempt, author, index in value]


def _counts(value: Any) -> dict[str, int]:
    """How many messages of each kind."""
    if not isinstance(value, dict):
        raise ValueError
    return {_kind(kind): _count(number) for kind, number in value.items()}


Name = Annotated[str, _name]

Count = Annotated[int, _count]

Number = Annotated[float, _number]

Reason = Annotated[str, _code]

# ── events ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class StartingEvent(TypedDict):
    event: Literal["starting"]
    version: Annotated[str, _version]
    parties: Count
    neighbours: Count
    contributed: Count
    starts: Count


class ListeningEvent(TypedDict):
    event: Literal["listening"]


class LinkedEvent(TypedDict):
    event: Literal["linked"]
    peer: Name


class LostEvent(TypedDict):
    event: Literal["lost"]
    peer: Name
    reason: Reason


class RefusedEvent(TypedDict):
    """Somebody was turned away; without a name, this party itself may be who was refused."""

    event: Literal["refused"]
    peer: NotRequired[Name]
    reason: Reason
    final: NotRequired[bool]  # told to who started the process


class NoteEvent(TypedDict):
    """Something that the owner should know; a line shows the code of its text as `reason`."""

    event: Literal["note"]
    peer: NotRequired[Name]
    reason: NotRequired[Reason]
    text: str


class ProofEvent(TypedDict):
    """Somebody signed two things (`netdp.peers.exchange`)."""

    event: Literal["evidence"]
    peer: Name
    attempt: Count


class SignedEvent(TypedDict):
    """Others have signed the answer that is here, since it was told."""

    event: Literal["signed"]
    signed: Count


class StatusEvent(TypedDict, total=False):
    event: Literal["status"]
    attempt: Count
    links: Count
    votes: Count
    contributions: Count
    iteration: Count  # of a training; its loss on own rows has no field here
    of: Count
    rate: Number
    bytes: Count


class OutcomeEvent(TypedDict, total=False):
    event: Literal["outcome"]
    ok: Annotated[bool, _yes]
    withheld: Annotated[bool, _yes]
    attempt: Count
    parties: Count
    contributed: Count
    worse: Annotated[list[int], _length]
    reason: Reason
    spent: dict[str, Any]


class SpentEvent(TypedDict):
    event: Literal["spent"]
    contributions: Count
    epsilon: Number
    against: Count
    delta: Number


class StoppingEvent(TypedDict):
    event: Literal["stopping"]
    signal: Count
    contributed: Count


class StoppedEvent(TypedDict):
    event: Literal["stopped"]
    exit: Count
    contributed: Count
    seconds: Number


class FailedEvent(TypedDict):
    event: Literal["failed"]
    reason: Reason
    final: NotRequired[bool]


class GapEvent(TypedDict):
    """Lines of a log could not be written."""

    event: Literal["log"]
    lost: Count


class MovedEvent(TypedDict):
    """A frame, of which only a trace tells (`netdp.peers.trace`)."""

    event: Literal["sent", "received"]
    peer: Name
    items: Annotated[list[list[Any]] | None, _items]
    words: Annotated[dict[str, int] | None, _counts]
    more: Annotated[int | None, _count]


PeerEvent = (
    StartingEvent | ListeningEvent | LinkedEvent | LostEvent | RefusedEvent | NoteEvent | ProofEvent | SignedEvent | StatusEvent
    | OutcomeEvent | SpentEvent | StoppingEvent | StoppedEvent | FailedEvent | GapEvent | MovedEvent
)  # fmt: skip
"""What a peer reports. An outcome and a status hold more than is listed here, for who runs the peer; no line shows it."""

Check = Callable[[Any], Any]


def _checks() -> dict[str, dict[str, Check]]:
    found: dict[str, dict[str, Check]] = {}
    for kind in get_args(PeerEvent):
        hints = get_type_hints(kind, include_extras=True)
        plain = {name: get_args(hint)[0] if get_origin(hint) is NotRequired else hint for name, hint in hints.items()}
        checks = {name: hint.__metadata__[0] for name, hint in plain.items() if get_origin(hint) is Annotated}
        found |= dict.fromkeys(get_args(hints["event"]), checks)
    return found


EVENTS: Mapping[str, Mapping[str, Check]] = _checks()
"""What a line may say of every event: its fields, and what each of them takes."""


def fields_of(event: Mapping[str, Any], names: Collection[str] | None = None) -> dict[str, Any]:
    """What a line may say of an event: only the fields of `EVENTS`, only values that fit them.

    names  of all who take part: no other name is written (None: any that a party could have)

    >>> fields_of({"event": "linked", "peer": "birch", "key": "abc"})
    {'peer': 'birch'}
    >>> fields_of({"event": "note", "text": Sentence.SECOND_HELLO()})
    {'reason': 'second-hello'}
    >>> fields_of({"event": "linked", "peer": "the value 17.25"})
    {'dropped': 1}
    """
    found, dropped = {}, 0
    given = {"reason": event.get("text"), **event}
    if isinstance(given.get("roster"), list | tuple):
        given["parties"] = len(given["roster"])
    for name, check in EVENTS.get(str(event.get("event")), {}).items():
        if given.get(name) is None:
            continue
        try:
            value = check(given[name])
            if check is _name and names is not None and value not in names:
                raise ValueError
        except (ValueError, TypeError):
            dropped += 1
        else:
            if value is not None:
                found[name] = value
    return found | ({"dropped": dropped} if dropped else {})


def level_of(event: str, fields: Mapping[str, Any]) -> str:
    """How much a line matters: info, warning or error.

    >>> level_of("lost", {"reason": "ended-there"}), level_of("note", {"reason": "stuck"}), level_of("failed", {})
    ('info', 'warning', 'error')
    """
    if fields.get("reason") in _HARMLESS:
        return "info"
    if event == "failed":
        return "error"
    if event in ("refused", "evidence", "lost", "log", "note"):
        return "warning"
    return "warning" if event == "outcome" and (fields.get("ok") is False or "worse" in fields) else "info"


SIZE, KEPT = 10 << 20, 4
"""Bytes after which a file is moved aside, and how many old ones are kept beside it."""

STATUS_EVERY = 10.0
"""Seconds between two lines that only say how far the party is."""


class Sink(Protocol):
    """Where lines go; raises OSError if one cannot be written."""

    def write(self, line: str) -> None: ...

    def close(self) -> None: ...


def _now() -> float:
    return datetime.now(UTC).timestamp()


class Log:
    """Hears what a peer reports, and writes lines about it.

    >>> class Lines(list):
    ...     write = list.append
    >>> lines = Lines()
    >>> log = Log(lines, "ash", bytes(32), now=lambda: 0.0)
    >>> log({"event": "outcome", "ok": True, "attempt": 1, "total": [17.25], "roster": ["ash", "birch"]})
    >>> print(lines[0], end="")
    {"time":"1970-01-01T00:00:00.000Z","level":"info","party":"ash","study":"0000000000000000","event":"outcome","ok":true,"attempt":1,"parties":2}
    """

    def __init__(
        self,
        sink: Sink,
        party: str = "",
        study: bytes = b"",
        names: Iterable[str] = (),
        *,
        now: Callable[[], float] = _now,
    ) -> None:
        self._sink, self._now, self.lost = sink, now, 0
        self._names: frozenset[str] = frozenset()
        self._status: tuple[dict[str, Any], float] = ({}, -math.inf)
        self.about(party, study, names)

    def about(self, party: str, study: bytes, names: Iterable[str] = ()) -> None:
        """Of whom and of which study the next lines are, and who else takes part: no other names are written."""
        self._names = frozenset(names)
        self._about = {key: value for key, value in (("party", party), ("study", study.hex()[:16])) if value}

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind, moment = str(event.get("event")), self._now()
        fields = fields_of(event, self._names)
        if kind == "status":
            before, when = self._status
            if fields == before or moment < when + STATUS_EVERY:
                return
            self._status = (fields, moment)
        if self.lost:
            gone, self.lost = self.lost, 0
            if not self._write("log", {"lost": gone}, moment):
                self.lost += gone
        self._write(kind if kind in EVENTS else "unlisted", fields, moment)

    def close(self) -> None:
        """Nothing more will be written."""
        self._sink.close()

    def _write(self, kind: str, fields: dict[str, Any], moment: float) -> bool:
        time = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "level": level_of(kind, fields), **self._about, "event": kind, **fields}
        try:
            self._sink.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")
        except (OSError, ValueError):  # a full disk, a pipe that nobody reads, a stream that was closed
            self.lost += kind != "log"
            return False
        return True


class Stream:
    """Lines to an open text stream, such as standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        """Write and flush."""
        self._stream.write(line)
        self._stream.flush()

    def close(self) -> None:
        """The stream is not ours to close."""


def opened_privately(path: Path) -> Any:
    """A file to append to, without a buffer, readable by its owner only, also if it was there before."""
    # not into a pipe (it could block) or a device, and not through a link that somebody put there
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    opened = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        os.fchmod(opened, 0o600)
    except BaseException:
        os.close(opened)
        raise
    return os.fdopen(opened, "ab", buffering=0)


class RotatingFile:
    """Lines to a file that is moved aside when it is full: FILE.1 is the last one, FILE.2 the one before."""

    def __init__(self, path: Path, size: int = SIZE, kept: int = KEPT) -> None:
        if size < 1 or kept < 0:
            raise InvalidValue(
                f"a log has room for at least one byte and keeps 0 or more old files, got {size}, {kept}"
            )
        self.path, self._size, self._kept = Path(path), size, kept
        self._file: Any = None
        try:
            self._open()
        except OSError as error:
            raise NetdpError(
                f"the log {path} cannot be opened: {error.strerror or error}; give another --log FILE"
            ) from None

    def _open(self) -> None:
        self._file = opened_privately(self.path)

    def write(self, line: str) -> None:
        """Append a line; first make room, if it would be too long."""
        data = line.encode()
        if self._file is None:
            self._open()
        written = os.fstat(self._file.fileno()).st_size
        if written and written + len(data) > self._size:
            self._turn()
            written = os.fstat(self._file.fileno()).st_size
        if self._file.write(data) != len(data):  # the disk became full in the middle of it
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), written)
            raise OSError("a line was written in part")

    def _turn(self) -> None:
        self.close()
        for number in range(self._kept - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        if self._kept:
            os.replace(self.path, f"{self.path}.1")
        else:
            self.path.unlink()
        self._open()

    def close(self) -> None:
        """Write no more to this file."""
        if self._file is not None:
            self._file.close()
            self._file = None
