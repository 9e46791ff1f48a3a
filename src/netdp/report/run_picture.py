"""A study that ran on real peers, as a picture: who sent to whom, and what any k parties together have learned from it.

**What any k learned** is computed again from what was really contributed, not from what had been planned. Every party
tells how often it contributed (rows of its ledger); the roster of the attempt that gave the answer is known to all.
Where the roster of another contribution is not known here, the smallest one that the study allows stands for it: fewer
parties share less noise, so the ε shown is never below the ledger's. Attempt 1 is always among everybody. Of a masked
sum all coalitions of one size learn the same; elsewhere only the sizes that the parties' ledgers were asked about are
drawn, and nothing is said about more.

**How far the numbers may have come.** A transcript has no payloads: it tells that u sent v something in round t, not
whose. What v may hold after it are the numbers of those from whom a chain of sends in rising rounds leads to v. The
picture counts them: nobody holds more.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.accounting import local_dp, trusted_curator
from netdp.errors import Unsupported
from netdp.numerics.rounding import rounded_up
from netdp.peers.ledger.entries import Entry, entry_of, total
from netdp.peers.study import Study
from netdp.peers.up import UpResult
from netdp.privacy.readable import readable
from netdp.views import Transcript

from .curves import below
from .files import write_picture
from .layout import placed
from .network import NAMED, shortened
from .run import LOOPBACK, answer_lines, run_rows
from .scale import scientific

if TYPE_CHECKING:
    from .figures import Picture

SIZES = 24
"""At most so many sizes of coalitions are drawn."""
_INK, _ACCENT, _WARM, _GREEN, _FAINT = "#1b1f24", "#0072B2", "#D55E00", "#009E73", "#6b7280"


@dataclass(frozen=True)
class Learned:
    """ε at δ that any k parties together learned about any party that reported, and what to compare it with.

    sizes, epsilon   k and its ε; infinite where nothing bounds it
    local, curator   with the same noise: everybody publishes its own numbers; somebody trusted publishes the total. None
                     where they have no meaning
    note             what the sizes that are not there mean, in words
    """

    delta: float
    sizes: tuple[int, ...]
    epsilon: tuple[float, ...]
    local: float | None
    curator: float | None
    note: str


def save_run_picture(result: UpResult, path: str | os.PathLike[str]) -> Path:
    """Write the picture of a run: .html (with the rounds to play), .png, .svg or .pdf; it appears whole or not at all."""
    return write_picture(path, lambda: draw_run(result), lambda: _html(result))


# ── what was learned ──────────────────────────────────────────────────────────────────────────────────────────────────


def coalition_sizes(most: int, wanted: int = SIZES) -> list[int]:
    """Sizes from 1 to `most`, at most so many: evenly spaced in the number of those that are left, on a log scale.

    What a masked sum reveals changes with how many are left over, and fastest when these are few.

    >>> coalition_sizes(5), coalition_sizes(199, 6)
    ([1, 2, 3, 4, 5], [1, 131, 176, 192, 197, 199])
    """
    if most <= wanted:
        return list(range(1, most + 1))
    left = np.round(np.geomspace(most, 1, wanted)).astype(int)
    return sorted({int(most + 1 - x) for x in left})


def learned(result: UpResult) -> Learned:
    """What any k parties together learned, at most, about any party that reported."""
    study = result.study
    delta, told = study.privacy.delta, result.to_dict()
    roster = [study.index(name) for name in told["roster"] or study.names]
    local: float | None
    curator: float | None
    try:
        attempt = study.protocol_of(roster)
        local = local_dp(attempt).worst_epsilon(delta)
        curator = trusted_curator(attempt).worst_epsilon(delta)
        if study.settings.kind == "ring-sum":
            local = None  # that of a ring has the noise of all shares in each: no line to compare with
    except Unsupported:
        local = curator = None
    gone = " About a party that is gone: no more than the study promises." if result.gone else ""
    if not study.running.depends_on_size_only:
        spent = told["guarantee"]["spent_epsilon"]
        sizes = tuple(sorted(int(k) for k in spent))
        more = "Nobody reported."
        if sizes:
            more = f"More than {sizes[-1]} together: not drawn here; each ledger says (netdp ledger show --against K)."
        return Learned(delta, sizes, tuple(float(spent[str(k)]) for k in sizes), local, curator, more + gone)
    cases = {_case(one): one for one in (contributions(result, name) for name in result.outcomes)}
    # up to all others, those outside the answer's roster included: they may have been in an earlier one
    sizes = tuple(sorted({*coalition_sizes(study.n - 1), study.privacy.colluders}))
    worst = tuple(
        max((float(total(entries, k, study.task.unit).epsilon(delta)) for entries in cases.values()), default=0.0)
        for k in sizes
    )
    between = (
        "A size between two of those drawn learned no more than the larger one." if len(sizes) < study.n - 1 else ""
    )
    return Learned(delta, sizes, worst, local, curator, between + gone)


def contributions(result: UpResult, name: str) -> list[Entry]:
    """What a party of a masked sum contributed to, as entries that cost it no less than those in its ledger."""
    study, told = result.study, result.outcomes[name]
    me, often = study.index(name), int(told["spent"]["contributions"])
    everybody = tuple(range(study.n))
    rosters: list[tuple[int, ...]] = []
    earlier = study.privacy.attempts  # attempts before the answer, as far as known
    if told["ok"]:
        roster = tuple(sorted(study.index(one) for one in told["roster"]))
        earlier = int(told["attempt"]) - 1
        if me in roster and often:
            rosters.append(roster)
    if earlier and often - len(rosters) >= earlier:
        rosters.append(everybody)  # it was in all of them, and the first is among everybody
    fewest = tuple(sorted([me, *[u for u in everybody if u != me][: study.smallest_roster - 1]]))
    rosters += [fewest] * (often - len(rosters))
    return [entry_of(study, i, roster, me) for i, roster in enumerate(rosters, start=1)]


def _case(entries: list[Entry]) -> tuple[int, ...]:
    """Of a masked sum, what all parties with the same sizes of rosters have in common: the loss."""
    return tuple(sorted(len(entry.roster) for entry in entries))


# ── what travelled ────────────────────────────────────────────────────────────────────────────────────────────────────


def heard(transcript: Transcript) -> list[list[int]]:
    """After each round, from how many parties (itself included) something may have reached each; until nothing changes.

    >>> heard(Transcript(3, (np.array([[0, 1]]), np.array([[1, 2]])), np.array([0, 1])))
    [[1, 2, 1], [1, 2, 3]]
    """
    holds = np.eye(transcript.n, dtype=bool)
    rounds: list[list[int]] = []
    for t in range(transcript.rounds):
        after = holds.copy()
        for u, v in transcript.messages(t).tolist():
            after[v] |= holds[u]
        holds = after
        rounds.append(holds.sum(axis=1).tolist())
    while len(rounds) > 1 and rounds[-1] == rounds[-2]:
        rounds.pop()
    return rounds


def standing(result: UpResult) -> list[str]:
    """Of every party what became of it: "answered", "outside" (it holds the answer, but is not in it), "ended" or "gone"."""
    roster = set(result.to_dict()["roster"] or ())
    out = []
    for name in result.study.names:
        if name not in result.outcomes:
            out.append("gone")
        elif not result.outcomes[name]["ok"]:
            out.append("ended")
        else:
            out.append("answered" if name in roster else "outside")
    return out


def _carries(result: UpResult) -> str:
    """What a round is, in words."""
    how = result.study.settings
    if how.kind == "ring-sum":
        return "the token's hops, one by one"
    if how.kind == "gossip" or getattr(how, "spread", "flood") == "average":
        return "rounds of averaging with the neighbours"
    return "by how many links a contribution had crossed before"


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def page_data(result: UpResult) -> dict[str, Any]:
    """Everything that the page shows, as plain values."""
    study, transcript = result.study, result.messages
    found, promised = learned(result), study.promise()
    unit = "all data of a party" if study.task.unit == "party" else "one record of a party"
    return {
        "title": study.name,
        "question": f"{study.task.describe()}; {study.n} parties, {study.graph.name}",
        "how": LOOPBACK,
        "names": list(study.names),
        "named": study.n <= NAMED,
        "points": placed(study.graph).round(4).tolist(),
        "edges": study.graph.edges().tolist(),
        "patterns": [pattern.tolist() for pattern in transcript.patterns],
        "schedule": transcript.schedule.tolist(),
        "heard": heard(transcript),
        "carries": _carries(result),
        "standing": standing(result),
        "reasons": [result.gone.get(name) or result.outcomes.get(name, {}).get("reason") for name in study.names],
        "restarts": [result.restarts.get(name, 0) for name in study.names],
        "delta": found.delta,
        "unit": unit,
        "sizes": list(found.sizes),
        "epsilon": [_short(value) for value in found.epsilon],
        "local": None if found.local is None else _short(found.local),
        "curator": None if found.curator is None else _short(found.curator),
        "unbounded": not study.running.depends_on_size_only,
        "who": _who(study),
        "promise": [_against(study), study.privacy.epsilon],
        "attempts": study.privacy.attempts,
        "note": found.note.strip(),
        "rows": run_rows(result),
        "claim": promised.claim.value,
        "assumptions": list(promised.assumptions),
    }


def _html(result: UpResult) -> str:
    # "</" inside a script would end it: names and reasons come from files and from other parties.
    text = json.dumps(page_data(result), allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    template = resources.files("netdp.report").joinpath("run.html").read_text("utf-8")
    return template.replace("/*DATA*/null", text.replace("<!--", "<\\u0021--"))


def _short(value: float) -> float | None:
    """Five digits, rounded up; JSON has no infinity, which is None here."""
    return rounded_up(value, 5) if math.isfinite(value) else None


# ── the still picture ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw_run(result: UpResult) -> Picture:
    """Who sent to whom and what became of them, and what any k parties together learned."""
    from .figures import PAGE, Picture, paper_style

    study = result.study
    answer = [f"{name} {value}" for name, value in answer_lines(result.answer or {})[:3]] or ["no answer"]
    with paper_style():
        figure = Picture(figsize=(PAGE, 3.5))
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        figure.suptitle(fill(f"{study.name}: {', '.join(answer)}", 115), fontsize=8, x=0.01, ha="left")
        _draw_messages(left, result)
        _draw_learned(right, learned(result), _against(study), study.privacy.epsilon, _who(study))
    return figure


def _draw_messages(axes: Any, result: UpResult) -> None:
    """The links that carried messages, and of every party what became of it."""
    from matplotlib.collections import LineCollection

    study, transcript = result.study, result.messages
    points, edges = placed(study.graph), study.graph.edges()
    used = {tuple(sorted(pair)) for pattern in transcript.patterns for pair in pattern.tolist()}
    colours = [_ACCENT if tuple(sorted(edge)) in used else "#c8ccd0" for edge in edges.tolist()]
    alpha = float(np.clip(9 / max(study.graph.m, 1) ** 0.45, 0.1, 0.7))
    axes.add_collection(LineCollection(list(points[edges]), colors=colours, linewidths=0.8, alpha=alpha, zorder=1))
    size = float(np.clip(3000 / study.n, 6, 70))
    looks = {
        "answered": ("o", _GREEN, "holds the answer"), "outside": ("s", _FAINT, "holds it, not in it"),
        "ended": ("D", "#c77800", "ended without it"), "gone": ("X", _WARM, "gone"),
    }  # fmt: skip
    where = np.array(standing(result))
    for kind, (marker, colour, label) in looks.items():
        if (at := points[where == kind]).size:
            axes.scatter(*at.T, marker=marker, c=colour, s=size, zorder=2, label=label)
    again = np.array([result.restarts.get(name, 0) > 0 for name in study.names])
    if again.any():
        axes.scatter(
            *points[again].T, s=size * 2.4, facecolors="none", edgecolors="#c77800", zorder=3, label="restarted"
        )
    if study.n <= NAMED:
        for (x, y), name in zip(points, study.names, strict=True):
            axes.annotate(
                shortened(name), (x, y), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7, zorder=4
            )
    axes.set_title(f"{len(transcript):,} messages over {study.graph.m:,} links, {transcript.rounds} rounds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, columnspacing=1.0, handletextpad=0.2)
    axes.margins(0.14)
    axes.set_aspect("equal", adjustable="datalim")
    axes.axis("off")


def _who(study: Study) -> str:
    """Who may put together what they saw, in a word: a curator is no party, and looks all the same."""
    return "participants" if study.running.has_curator else "parties"


def _against(study: Study) -> int:
    """How many of these the promise is against."""
    return study.privacy.colluders + study.running.has_curator


def _draw_learned(axes: Any, found: Learned, colluders: int, promised: float, who: str) -> None:
    drawn = [(k, e) for k, e in zip(found.sizes, found.epsilon, strict=True) if math.isfinite(e)]
    if drawn:
        axes.plot(*zip(*drawn, strict=True), "o-", color=_ACCENT, markersize=4, label=f"any k {who} together learned")
    for value, colour, name in ((found.local, _WARM, "local DP"), (found.curator, _GREEN, "trusted curator")):
        if value is not None and math.isfinite(value):
            axes.axhline(value, color=colour, linestyle="--", linewidth=1, label=f"{name}: {readable(value)}")
    axes.plot([colluders], [promised], "D", color=_INK, label=f"promised against any {colluders}: {readable(promised)}")
    axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    if len(found.sizes) <= 3:  # of so few the usual marks lie between whole numbers
        axes.set_xticks(sorted({*found.sizes, colluders}))
    else:
        axes.xaxis.get_major_locator().set_params(integer=True)
    said = fill(found.note.strip(), 62)
    axes.set_xlabel(f"k: how many {who} put together what they saw\n{said}".strip())
    axes.set_ylabel(f"ε at δ = {scientific(found.delta)}, at most")
    axes.set_title(f"What any k {who} learned about anybody else")
    below(axes, columns=2, inches=0.42 + 0.13 * (said.count("\n") + bool(said)))


__all__ = ["Learned", "contributions", "draw_run", "heard", "learned", "save_run_picture"]
