"""A study: the file that all parties sign. It states everything that affects privacy or the answer.

No party works anything out for itself: noise, grid, modulus and graph are *stated* in the file, so that all machines run
the same, and a party only checks that what is stated keeps what is promised (`check_promise`). What is signed is the
SHA-256 of the study's canonical form: all fields, defaults included, as JSON with sorted keys, the graph as pairs of
party numbers. Comments, the order of the lines and the way a graph is written down are no part of it.

**What is promised** is one curve ε(δ) about every party, against any `colluders` parties together (fewer learn no
more), for all attempts that the study allows. With pads between all pairs, it depends on the size of a coalition only
(`netdp.families.masked.account`). On a ring and in gossip it depends on who colludes, so all coalitions of that size are
looked at, and where they are too many, the study is refused.

A *draft* lacks keys, addresses or its nonce. It can be read, explained and planned with, but not signed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from pydantic import Field, model_validator

from netdp.display import shown
from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.graphs.graph import Graph
from netdp.graphs.spec import parse
from netdp.numerics.arrays import FloatArray, rounded_down
from netdp.peers.kinds import with_task
from netdp.peers.records import Misfit, Strict
from netdp.privacy.guarantee import Guarantee
from netdp.protocols.base import Protocol

from ..identity import Card
from ..kinds import RUNNING, Kind
from .sections import NetworkSection, PartySection, Privacy, Timing, node_count
from .training import AnyTask

_MOST_PARTIES = 10_000
if TYPE_CHECKING:
    Settings = Any
else:
    Settings = Union[tuple(made.Settings for made in RUNNING.values())]  # noqa: UP007  made when the module is imported


class Study(Strict):
    """What all parties agree on. In files: TOML, with the sections task, privacy, protocol, network, timing, party.

    >>> from netdp.peers.study import Task
    >>> study = Study.plan("waits", Task(kind="mean", column="minutes", bounds=(0, 120)), [f"c{u}" for u in range(8)],
    ...                    graph="ring:8", epsilon=1.0, delta=1e-6, colluders=2)
    >>> study.is_complete, study.promise().worst_epsilon(1e-6) <= 1.0
    (False, True)
    """

    name: str
    nonce: str = ""
    format: Literal[1] = 1
    task: AnyTask
    privacy: Privacy
    settings: Annotated[Settings, Field(discriminator="kind", alias="protocol")]
    network: NetworkSection
    timing: Timing = Timing()
    parties: tuple[PartySection, ...] = Field(alias="party")
    curator: PartySection | None = None
    """Who collects what is shuffled; no party, and only for kinds that have one."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > 200:
            raise Misfit(("name",), f"must be one line of 1 to 200 letters, got {self.name!r}")
        if self.nonce and not re.fullmatch("[0-9a-f]{32}", self.nonce):
            raise Misfit(("nonce",), f"must be 32 hexadecimal digits, drawn for this study; got {self.nonce!r}")
        self._check_parties()
        self._check_privacy()
        try:
            self.graph.require_connected("a study")
        except (NetdpError, ValueError) as problem:
            raise Misfit(("network",), str(problem)) from None
        self.running.check()
        try:
            self.protocol()
        except Misfit:
            raise
        except NetdpError as problem:
            raise Misfit(("protocol",), str(problem)) from None
        return self

    def _check_parties(self) -> None:
        if not 2 <= len(self.parties) <= _MOST_PARTIES:
            raise Misfit(("party",), f"a study has 2 to {_MOST_PARTIES:,} parties, got {len(self.parties)}")
        if (self.curator is not None) != self.running.has_curator:
            what = "needs one: its name, address and card" if self.curator is None else "has none; take it out"
            raise Misfit(("curator",), f"{self.settings.kind} {what}")
        for key in ("name", "address", "signing", "agreement", "certificate"):
            seen: dict[str, int] = {}
            for number, party in enumerate(self.participants):
                # names become files, and some disks do not tell A from a
                value = getattr(party, key).lower() if key in ("name", "address") else getattr(party, key)
                if value and value in seen:
                    other = self.participants[seen[value]].name
                    place = ("party", number, key) if number < self.n else ("curator", key)
                    raise Misfit(place, f"is the same for {other} and {party.name}; they must differ")
                seen[value] = number

    def _check_privacy(self) -> None:
        terms = self.privacy
        if self.smallest_roster < 2:
            raise Misfit(("privacy", "absent"), f"leaves {self.smallest_roster} of {self.n} parties; two are needed")
        if terms.colluders < self.running.least_colluders:
            raise Misfit(
                ("privacy", "colluders"), f"must be {self.running.least_colluders} or more, got {terms.colluders}"
            )
        if terms.colluders >= self.smallest_roster:
            raise Misfit(
                ("privacy", "colluders"),
                f"{terms.colluders} of the {self.smallest_roster} parties of the smallest roster leave nobody to protect; "
                f"give at most {self.smallest_roster - 1}",
            )
        if getattr(self.settings, "grid", 1.0) > 1:
            raise Misfit(
                ("protocol", "grid"),
                f"must be 1 or less, a power of two: values reach from −1 to 1, got {self.settings.grid:g}",
            )
        units = self.n * (self.task.max_records or 1)
        if terms.delta >= 1 / units:
            raise Misfit(
                ("privacy", "delta"),
                f"{terms.delta:g} would allow to publish one {self.task.unit} of {units:,} as it is; give less than "
                f"{rounded_down(1 / units, 2):g}",
            )

    # ── in and out ────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Study:
        """Read a study or a draft; every mistake is named with its place."""
        from netdp.peers.study.files import read

        return read(path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as TOML, with comments."""
        Path(path).write_text(self.text, "utf-8")

    @property
    def text(self) -> str:
        """The study as TOML, with comments."""
        from netdp.peers.study.files import text

        return text(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the names of the file."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def canonical(self) -> str:
        """What is hashed: every field as JSON, keys sorted, the graph as sorted pairs of party numbers."""
        fields = self.to_dict() | {"network": {"edges": self.graph.edges().tolist()}}
        if self.curator is None:  # a study without one is what it was before there were any
            del fields["curator"]
        return json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the canonical form: what is signed, and by which all messages name the study."""
        return hashlib.sha256(self.canonical.encode("ascii")).digest()

    def replace(self, **changes: Any) -> Study:
        """The same study with some sections changed, each given whole or as the fields of it that change."""
        fields = self.to_dict()
        for name, change in changes.items():
            key = {"settings": "protocol", "parties": "party"}.get(name, name)
            plain = change.model_dump(mode="json", by_alias=True) if isinstance(change, Strict) else change
            old = fields.get(key)
            fields[key] = {**old, **plain} if isinstance(old, dict) and isinstance(plain, dict) else plain
        return Study(**fields)

    # ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_complete(self) -> bool:
        """Whether it can be signed: a nonce, and of every party an address and its keys."""
        return bool(self.nonce) and all(party.is_complete for party in self.participants)

    @property
    def lacking(self) -> tuple[str, ...]:
        """What a draft still needs, in words."""
        out = [] if self.nonce else ["a nonce (netdp study new writes one)"]
        for what, names in (
            ("addresses", [party.name for party in self.participants if not party.address]),
            ("cards", [party.name for party in self.participants if not party.signing]),
        ):
            if names:
                shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                out.append(f"the {what} of {shown}")
        return tuple(out)

    def complete(
        self, cards: Iterable[Card] | Mapping[str, Card] = (), addresses: Mapping[str, str] | Sequence[str] = (),
        nonce: str | None = None,
    ) -> Study:  # fmt: skip
        """With these cards and addresses (by name, or one per party in order), and a nonce if it has none yet."""
        by_name = {card.name: card for card in (cards.values() if isinstance(cards, Mapping) else cards)}
        if not isinstance(addresses, Mapping):
            listed = list(addresses)
            if listed and len(listed) != len(self.everybody):
                raise InvalidValue(f"{len(listed)} addresses for {len(self.everybody)}; give one each, or by name")
            addresses = dict(zip(self.everybody, listed, strict=False))
        if unknown := sorted((set(by_name) | set(addresses)) - set(self.everybody)):
            raise InvalidValue(
                f"{unknown[0]!r} is no party of the study {self.name!r}; its parties: {', '.join(self.everybody)}"
            )
        parties = []
        for party in self.participants:
            fields = party.model_dump()
            if party.name in by_name:
                fields |= by_name[party.name].to_dict()
            if party.name in addresses:
                fields["address"] = addresses[party.name]
            parties.append(fields)
        changes: dict[str, Any] = {"party": parties[: self.n], "nonce": nonce or self.nonce or secrets.token_hex(16)}
        if self.curator is not None:
            changes["curator"] = parties[-1]
        return self.replace(**changes)

    @classmethod
    def plan(cls, name: str, task: AnyTask, names: Sequence[str], **options: Any) -> Study:
        """A draft whose noise meets a privacy target; options: those of `netdp.peers.study.planning.plan`."""
        from netdp.peers.study.planning import plan

        return plan(name, task, names, **options)

    # ── who and where ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def n(self) -> int:
        """How many parties there are."""
        return len(self.parties)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parties' names, in the order of their numbers."""
        return tuple(party.name for party in self.parties)

    @property
    def participants(self) -> tuple[PartySection, ...]:
        """Who runs a peer: the parties by their numbers 0 … n − 1, and after them the curator, if there is one."""
        return self.parties if self.curator is None else (*self.parties, self.curator)

    @cached_property
    def everybody(self) -> tuple[str, ...]:
        """The participants' names, in the order of their numbers."""
        return tuple(one.name for one in self.participants)

    def index(self, name: str) -> int:
        """The number of a participant."""
        if name not in self.everybody:
            raise InvalidValue(
                f"{name!r} is no party of the study {self.name!r}; its parties: {', '.join(self.everybody)}"
            )
        return self.everybody.index(name)

    def card(self, u: int) -> Card:
        """The public card of participant u."""
        if not self.participants[u].signing:
            raise InvalidValue(
                f"the study {self.name!r} is a draft: {self.everybody[u]} has no keys in it; add its card first"
            )
        return self.cards[u]

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """The public cards of all participants, of a study that has them."""
        keys = ("name", "signing", "agreement", "certificate")
        return tuple(Card.from_dict({key: getattr(one, key) for key in keys}) for one in self.participants)

    def address(self, u: int) -> str:
        """Where participant u listens, host:port."""
        party = self.participants[u]
        if not party.address:
            raise InvalidValue(f"the study {self.name!r} is a draft: {party.name} has no address in it; add it first")
        return party.address

    @cached_property
    def graph(self) -> Graph:
        """Who talks to whom."""
        if self.network.graph is not None:
            if (size := node_count(self.network.graph)) != self.n:  # before it is built: it may be huge
                raise InvalidValue(f"graph = {self.network.graph!r} has {size} nodes, and there are {self.n} parties")
            made = parse(self.network.graph)
            return Graph.from_edges(
                self.n, made.edges(), name=made.name, labels=self.names, positions=made.positions,
                laplacian_spectrum=made.laplacian_spectrum,
            )  # fmt: skip
        number = {name: u for u, name in enumerate(self.names)}
        for edge in self.network.edges or ():
            for end in edge:
                if end not in number:
                    raise InvalidValue(f"the edge {list(edge)} names {end!r}, which is no party")
        pairs = [(number[a], number[b]) for a, b in self.network.edges or ()]
        return Graph.from_edges(self.n, pairs, name=f"{len(pairs)} links", labels=self.names)

    def neighbours(self, u: int) -> tuple[int, ...]:
        """Whom participant u is linked to."""
        return self.running.neighbours(u)

    @property
    def smallest_roster(self) -> int:
        """The fewest parties that an attempt may be among."""
        return self.n - self.privacy.absent

    # ── what it stands for ────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def running(self) -> Kind:
        """All that depends on the kind of protocol."""
        return RUNNING[self.settings.kind](self)

    def protocol(self) -> Protocol:
        """What all parties run, with every attempt and absence that the study allows: what is promised beforehand."""
        return self.running.protocol()

    def protocol_of(self, roster: Iterable[int]) -> Protocol:
        """One attempt among these parties: what is charged to the ledger before a party contributes to it."""
        return self.running.protocol_of(self.checked_roster(roster))

    def checked_roster(self, roster: Iterable[int]) -> tuple[int, ...]:
        """These party numbers, if they can be the roster of an attempt."""
        members = tuple(roster)
        if list(members) != sorted(set(members)) or not all(0 <= u < self.n for u in members):
            raise InvalidValue(f"a roster is a rising list of party numbers below {self.n}, got {members!r}")
        if len(members) < self.smallest_roster:
            raise InvalidValue(
                f"a roster of {len(members)} is below the {self.smallest_roster} that the study asks for"
            )
        return members

    def noise(self, parties: int | None = None) -> float:
        """The standard deviation of the noise in one coordinate of the total over so many parties (all by default)."""
        return self.running.noise(self.n if parties is None else parties)

    def answer(self, total: Sequence[float] | FloatArray, parties: int | None = None) -> dict[str, Any]:
        """The answer in the data's own units, from the noisy total over so many parties (all by default)."""
        return self.running.answer(total, self.n if parties is None else parties)

    def promise(self, colluders: int | None = None) -> Guarantee:
        """What any so many parties together (as many as the study plans for, by default) learn about any other, at most."""
        found = self.running.promise(self.privacy.colluders if colluders is None else colluders)
        return with_task(found, self.task)

    @cached_property
    def _certified(self) -> float:
        return self.running.worst_epsilon(self.privacy.colluders, self.privacy.delta)

    def check_promise(self) -> float:
        """The certified ε at the study's δ; refuses a study that promises less than it costs."""
        found = self._certified
        if not found <= self.privacy.epsilon:
            raise Refused(
                f"the study {self.name!r} promises epsilon = {self.privacy.epsilon:g} at delta = {self.privacy.delta:g}, but "
                f"its noise ({self.running.noise_words}) allows {found:.4g}; plan it anew, with more noise"
            )
        return found

    def _repr_html_(self) -> str:
        """For notebooks."""
        return str(shown("Study.html")(self))

    def explain(self) -> str:
        """What will be revealed to whom, in plain words."""
        from netdp.peers.study.explanation import explain

        return explain(self)
