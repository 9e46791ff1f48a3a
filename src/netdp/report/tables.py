"""An answer as a table for a terminal: by distance beside the protocol's plain form, or one line for each alternative."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdp.privacy.wording import readable
from netdp.protocols.answers import CURATOR, LOCAL, OWN, PUBLISHED, Answer, AnswerRow, Figures, error_words, loss_words

_CLAIMS = {
    "exact": "claim: exact, a matching attack exists",
    "upper": "claim: upper, a proved bound",
}


def answer_table(answer: Answer) -> RenderableType:
    """What the observers can learn, and how good the protocol's own answer will be."""
    told = _by_distance(answer) if answer.plain is not None and answer.by_distance else _beside(answer)
    return Group(Text(answer.protocol.describe()), Text(f"{answer.question}\n", style="bold"), *told, *_renyi(answer))


def _renyi(answer: Answer) -> list[Text]:
    if answer.renyi is None:
        return []
    order, worst = answer.renyi
    return [Text(f"\nRényi divergence of order {order:g}, the worst over all parties: {readable(worst)}")]


def _beside(answer: Answer) -> list[RenderableType]:
    """The loss and its alternatives, one below the other."""
    loss, delta = answer.loss, answer.delta
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    table.add_row(
        loss.claim.label, loss_words(loss, delta), "", style="bold green" if loss.is_certified else "bold yellow"
    )
    for name, other in answer.alternatives.items():
        if isinstance(other, str):
            table.add_row(name, "–", other)
        else:
            table.add_row(name, loss_words(other, delta), "")
    found = loss.found
    worst = [] if found is None else [Text(f"\nworst that was found: {found.sentence(delta)}")]
    assumed = [Text(f"  {line}", style="dim") for line in loss.assumptions]
    error = Text(f"\n{error_words(answer.protocol, answer.error)}")
    return [table, *worst, error, Text("\nassumes:"), *assumed]


def _by_distance(answer: Answer) -> list[RenderableType]:
    header, cells = distance_cells(answer)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in header:
        style = {PUBLISHED: "dim", f"{answer.loss.claim.value}, as chosen": "green"}.get(title)
        table.add_column(
            title.replace(" (", "\n(").replace(", ", ",\n").replace("trusted ", "trusted\n"),
            justify="right",
            style=style,
        )
    for row in cells:
        table.add_row(*row, style="bold" if row[0] == "worst" else "dim" if row[0] == "mean factor" else None)
    return [table, Text(_footer(answer))]


def distance_cells(answer: Answer) -> tuple[list[str], list[list[str]]]:
    """Header and cells, as text: worst ε by distance, everybody, mean factors. Groups out of reach share a row."""
    names = list(answer.everyone.losses)
    names = [
        *(name for name in names if name != OWN),
        OWN,
    ]  # the protocol as chosen stands after what it is compared with
    header = ["hops away", "parties"]
    header += [answer.label if name == OWN else answer.column(name) for name in names]
    same = {name: answer.other(name) for name in (LOCAL, CURATOR)}  # for every distance
    header += list(same)
    baselines = ["–" if one is None else readable(one.worst_epsilon(answer.delta)) for one in same.values()]

    def figures(row: AnswerRow) -> list[Figures]:
        return [row.losses[name] for name in names]

    rows = answer.by_distance
    reached = [row for row in rows if any(one.worst_factor for one in figures(row))]
    beyond = rows[len(reached) :]
    cells = [
        [str(row.hops), f"{row.parties:,}", *(readable(one.epsilon) for one in figures(row)), *baselines]
        for row in reached
    ]
    if beyond:
        group = str(beyond[0].hops) if len(beyond) == 1 else f"{beyond[0].hops}–{beyond[-1].hops}"
        cells.append([group, f"{sum(row.parties for row in beyond):,}", *["0"] * len(names), *baselines])
    everyone = figures(answer.everyone)
    worst = [readable(one.epsilon) for one in everyone]
    cells.append(["worst", f"{answer.everyone.parties:,}", *worst, *baselines])
    factors = [_factor(one.mean_factor) for one in everyone]  # a summary, not a guarantee: rounded as usual
    others = [_factor(None if one is None or one.factor is None else one.mean_factor) for one in same.values()]
    cells.append(["mean factor", "", *factors, *others])
    return header, cells


def _factor(value: float | None) -> str:
    return "–" if value is None else f"×{value:.3g}"


def _footer(answer: Answer) -> str:
    lines = [f"\n{_CLAIMS[answer.loss.claim.value]}; rounding margin {answer.loss.slack:.0e}, on the safe side"]
    lines.append(error_words(answer.protocol, answer.error))
    if answer.formula_fails:
        lines.append("the published formula is below the exact loss at some distance (docs/guarantees.md)")
    return "\n".join(lines)
