"""What the page asks: a network, what its observers learn, all pairs, a plan for a target; every number from the accountants.

A *state* is what the page holds: the very names of the flags of `netdp account` (graph, protocol, rounds, sigma, observer …), so
the page, the command line and Python cannot disagree; `netdp.settings` reads it and refuses what a protocol does not know.
"""

from __future__ import annotations

import math
from typing import Any

from netdp.engines.choice import engine
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import Progress
from netdp.peers.study.sections import is_fixed
from netdp.peers.study.study import Study
from netdp.protocols.accounting import account
from netdp.protocols.answers import answer
from netdp.protocols.base import Protocol
from netdp.protocols.calibration import calibrate, calibrations
from netdp.protocols.family import Way
from netdp.report.charts import any_heat_map
from netdp.report.study.accuracy import comparison as study_errors
from netdp.settings.catalogue import CATALOGUE
from netdp.settings.loading import account_settings, flags_of, plan_settings
from netdp.settings.models import Accounting, protocol_fields, turns_of, users
from netdp.studio import snippets
from netdp.studio.answers import of_answer, of_plan
from netdp.studio.controls import settings_of
from netdp.studio.networks import Networks, crowd, drawn

BESIDES = ("graph", "protocol", "observer", "colluders", "delta")
"""What a state says besides the settings of its protocol."""

STUDY = "@study"
"""What the page calls the graph of the study it was opened with."""

State = dict[str, Any]


class Explorer:
    """The accountants, behind one page."""

    def __init__(self, study: Study | None = None) -> None:
        self.networks = Networks()
        self.study = study
        self.first: State = {
            "graph": "hypercube:6", "protocol": "gossip", "rounds": 20, "sigma": 4.0, "masks": 0.0, "observer": ["0"],
        }  # fmt: skip
        if study is not None:
            self.first = self._of_study(study)

    def _of_study(self, study: Study) -> State:
        protocol = study.protocol()
        for name, entry in CATALOGUE.items():
            for family, way in entry.ways.items():
                if way.protocol != type(protocol).__name__:
                    continue
                if way.first == "users" and family:
                    return {
                        "graph": f"{family}:{protocol.n}", "protocol": name, **settings_of(protocol, way),
                        "delta": study.privacy.delta, "observer": ["0"],
                    }  # fmt: skip
                self.networks.keep(STUDY, study.network.graph or "edges.csv", study.graph)
                looks = {} if protocol.roles else {"observer": [study.names[0]]}
                return {
                    "graph": STUDY, "protocol": name, **settings_of(protocol, way), "delta": study.privacy.delta, **looks,
                }  # fmt: skip
        raise InvalidValue(
            f"the studio cannot explore {type(protocol).__name__}, which this study runs; watch it instead"
        )

    # ── what is asked ──────────────────────────────────────────────────────────────────────────────────────────────

    def network(self, state: State) -> dict[str, Any]:
        """The graph, to be drawn."""
        name, way = self._way(state)
        if way.first == "users" and name.partition(":")[0] == "complete" and not self.networks.known(name):
            return crowd(users(name))
        called, graph = self.networks.get(_drawn_name(name, way))
        return drawn(self.networks, called, graph)

    def account(self, state: State, progress: Progress | None = None) -> dict[str, Any]:
        """What the observers learn about everybody."""
        settings, protocol = self._settled(state)
        delta, colluders = settings.delta, settings.colluders
        with engine("threads"):
            observers = None if colluders is not None else settings.observers(protocol)
            found = of_answer(answer(protocol, observers, delta, colluders=colluders, progress=progress))
        if self.study is not None and _what_runs(state) == _what_runs(self.first):  # its task is known, too
            found["study_errors"] = {
                "epsilon": self.study.privacy.epsilon, "delta": self.study.privacy.delta, **study_errors(self.study),
            }  # fmt: skip
        return found

    def pairs(self, state: State, progress: Progress | None = None) -> dict[str, Any]:
        """What each party alone learns about each other one: all pairs, or a sample of a large network."""
        settings, protocol = self._settled(state)
        with engine("threads"):
            heat = any_heat_map(protocol, None, progress, delta=settings.delta)
        if heat is None:
            raise Unsupported(
                "No picture of all pairs: all pairs are alike, nobody alone sees anything, or there are too many parties for this "
                "protocol. `netdp account --who-learns-most` looks at single observers"
            )
        return (heat if protocol.network is None else heat.along(protocol.network)).to_dict()

    def plan(self, state: State, epsilon: float, only_noise: bool, progress: Progress | None = None) -> dict[str, Any]:
        """Settings that meet a target with the least error: the noise alone, or everything that a planner chooses."""
        settings, protocol = self._settled(state)
        name, way = str(state.get("protocol", "gossip")), settings.way
        colluders = settings.colluders or max(1, len(settings.observer or ()))
        with engine("threads"):
            if only_noise:
                found, holds = self._with_noise(settings, protocol, epsilon, colluders)
                return {"settings": settings_of(found, way), "options": [], "notes": [], "holds": holds}
            flags = set(flags_of("plan", name, settings.graph))
            asked = {key: value for key, value in self._called(state).items() if key in flags and key != "observer"}
            asked |= {"protocol": name} | ({"epsilon": epsilon} if "epsilon" in flags else {})
            if "epsilon" in asked:
                asked.pop("epsilon0", None)
            asked |= {"colluders": colluders} if "colluders" in flags and colluders > 1 else {}
            wanted = plan_settings(None, asked)
            if (graph := self._at_hand(state)) is not None:
                wanted.on(graph)
            try:
                return of_plan(wanted.planned(progress), way)
            except Unsupported as reason:
                raise Unsupported(f"{reason}. Or set everything else yourself and press “Only the noise”") from None

    @staticmethod
    def _with_noise(settings: Accounting, protocol: Protocol, epsilon: float, colluders: int) -> tuple[Protocol, str]:
        """The noise that meets a target, and against whom: everybody; where that is too much, the one party that looks."""
        if colluders > 1:
            found = calibrate(protocol, epsilon, settings.delta, colluders=colluders)
            return found, f"against any {colluders} parties together"
        try:
            return calibrate(protocol, epsilon, settings.delta), "against every single party"
        except Unsupported:
            if not {"observers", "coalitions"} <= {*calibrations.options(protocol)} or not settings.observer:
                raise
            found = calibrate(protocol, epsilon, settings.delta, observers=settings.observers(protocol))
            return found, f"against party {settings.observer[0]} only: the network is too large to look at everybody"

    def words(self, state: State) -> dict[str, str]:
        """The state as a command line and as Python."""
        settings, protocol = self._settled(state)
        observers = None if settings.colluders is not None else settings.observers(protocol)
        uploaded = self.networks.known(str(state.get("graph")))
        return {
            "command": snippets.command_line(self._typed(state)),
            "python": snippets.python(settings, protocol, observers, uploaded),
        }

    def draft(self, state: State, epsilon: float | None, progress: Progress | None = None) -> dict[str, str]:
        """The state as a study file: promised is the target, or what is certified now."""
        settings, protocol = self._settled(state)
        colluders = settings.colluders or len(settings.observer or ())
        with engine("threads"):
            if epsilon is None:
                against: dict[str, Any] = {"colluders": colluders} if colluders > 1 else {}
                who = None if against else settings.observers(protocol)
                epsilon = account(protocol, who, progress=progress, **against).worst_epsilon(settings.delta)
                epsilon = float(f"{epsilon * 1.0005:.4g}") if math.isfinite(epsilon) else epsilon
            about = snippets.command_line(self._typed(state))
            graph: str | Graph | None = protocol.network
            if graph is not None and not self.networks.known(str(state["graph"])) and is_fixed(settings.graph):
                graph = settings.graph  # one line instead of all edges
            return {"study": snippets.study(protocol, graph, epsilon, settings.delta, colluders, about)}

    def edges(self, state: State) -> dict[str, str]:
        """The graph as an edge list, for those who have it only here."""
        called, graph = self.networks.get(_drawn_name(*self._way(state)))
        lines = ["from,to", *(f"{_cell(graph.label(u))},{_cell(graph.label(v))}" for u, v in graph.edges().tolist())]
        return {"name": f"{called.partition(':')[0].removesuffix('.csv')}.csv", "text": "\n".join(lines) + "\n"}

    # ── from a state to a protocol ─────────────────────────────────────────────────────────────────────────────────

    def _way(self, state: State) -> tuple[str, Way]:
        """The graph as the page calls it, and the protocol's way on it."""
        name, protocol = state.get("graph"), state.get("protocol", "gossip")
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue("graph is missing; pick one")
        if protocol not in CATALOGUE:
            raise InvalidValue(f"unknown protocol {protocol!r}; choose one of {', '.join(CATALOGUE)}")
        return name, CATALOGUE[protocol].way(self.networks.called(name))

    def _called(self, state: State) -> State:
        """The state as flags: a graph is called as on a command line, and nothing but the protocol's settings is let in."""
        name, way = self._way(state)
        allowed = {*BESIDES, *(field.replace("_", "-") for field in protocol_fields(way))}
        for key in state:
            if key not in allowed:
                raise InvalidValue(f"{key!r} is no setting of {state.get('protocol', 'gossip')} on {name}")
        made = {key: value for key, value in state.items() if value is not None and value != []}
        return {**made, "graph": self.networks.called(name)}

    def _typed(self, state: State) -> State:
        """The state as one would type it: parties of a study that is on a named graph have numbers there."""
        flags, name = self._called(state), str(state["graph"])
        if name == STUDY and self.study is not None and self.study.network.graph is not None and "observer" in flags:
            number = {party: u for u, party in enumerate(self.study.names)}
            flags["observer"] = [number.get(party, party) for party in flags["observer"]]
        return flags

    def _at_hand(self, state: State) -> Graph | None:
        name, way = self._way(state)
        if way.first not in ("graph", "users") or (way.first == "users" and not self.networks.known(name)):
            return None
        return self.networks.get(name)[1]

    def _settled(self, state: State) -> tuple[Accounting, Protocol]:
        settings = account_settings(None, self._called(state))
        self.networks.check(str(state["graph"]), settings.way.first)
        graph = self._at_hand(state)
        if graph is not None:
            settings.on(graph)
        return settings, settings.made()


def _what_runs(state: State) -> State:
    """A state without who looks, and how closely."""
    return {key: value for key, value in state.items() if key not in ("observer", "colluders", "delta")}


def _cell(label: Any) -> str:
    text = str(label)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',;" \t') else text


def _drawn_name(name: str, way: Way) -> str:
    """Which graph is drawn: of those that are taken in turns the first."""
    return turns_of(name)[0] if way.first == "graphs" else name
