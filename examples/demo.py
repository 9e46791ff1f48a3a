"""`make demo`: a private mean over sixteen real peers on this machine, of which one dies on the way; what is revealed to whom?"""

from __future__ import annotations

import math
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

# Every clinic is a process that loads this file again: what is heavy is loaded in `main`.
CLINICS = Path(__file__).parent / "clinics"
RUN = "this run: "
"""How lines begin that are different every time: noise, network and clock are real."""
MORTAL = "juniper"
"""The clinic whose process is killed in the middle."""


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    from netdp.peers.launch import run_study
    from netdp.peers.study import Study
    from netdp.privacy.wording import readable
    from netdp.report.run import save_run_picture
    from netdp.report.study.accuracy import comparison

    console = Console(highlight=False, width=max(110, Console().width))
    draft = Study.read(CLINICS / "study.toml")
    task, terms, n, degree = draft.task, draft.privacy, draft.n, int(draft.graph.degrees[0])
    console.print(
        f"[bold]{n} clinics want the mean waiting time of all their patients. None shows its records to anybody.[/bold]\n"
        f"Here each clinic is a process of its own, with its own keys, data and ledger, and encrypted links to\n"
        f"{degree} others. Each publishes two numbers with its share of the noise, under one-time masks that only the\n"
        f"sum can be freed of. In the middle of it one clinic, {MORTAL}, is killed (kill -9) and does not come back.\n"
    )
    with tempfile.TemporaryDirectory(prefix="netdp-demo-") as folder:
        study_file, data = CLINICS / "study.toml", CLINICS / "waits.csv"
        result = run_study(study_file, data, Path(folder), restart=False, watch=watch, target=clinic)
        watch(None)
        if not result.ok or result.answer is None:
            raise SystemExit(no_answer(result))
        ledgers = sum(is_in_ledger(Path(folder) / name, result.study) for name in result.study.names)
    told, study = result.to_dict(), result.study

    k, delta = terms.colluders, terms.delta
    truth, records, factor = what_only_the_demo_knows(task)
    promised = [readable(study.promise(size).worst_epsilon(delta)) for size in (1, k)]
    level, few = readable(terms.epsilon), f"nobody, if at most {k} collude"
    best: dict[str, Any] = {}  # of the ways to do it, each with the law of noise that errs least
    for row in comparison(study)["rows"]:
        best[row["way"]] = min(row, best.get(row["way"], row), key=lambda one: one["times"])
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(f"promised: ε ≤ {terms.epsilon:g}", no_wrap=True)
    for title in ("error,\nminutes", "times the\ncurator's", "one clinic\nlearns", f"{k} together\nlearn"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("who must be trusted", no_wrap=True)
    ways = {
        "local DP": ("local DP: each publishes its own", (level, level, "nobody"), ""),
        "this study": (f"masked sum on {n} real peers", (*promised, few), "bold green"),
        "trusted curator": ("the best trusted curator", (level, level, "the curator, who sees all"), ""),
    }
    for way, (name, learned, style) in ways.items():
        error = factor * best[way]["noise"] / records
        table.add_row(name, f"{error:.2f}", f"{best[way]['times']:.2f}", *learned, style=style)
    console.print(table)

    seconds = result.seconds["answered"] - result.seconds["listening"]
    mean, gain = result.answer["value"], best["local DP"]["times"] / best["this study"]["times"]
    enough, whole = study.running.threshold, study.running.shares
    price = best["this study"]["times"]
    claim, signed, left = told["guarantee"]["claim"], len(result.signatures), len(result.answered)
    fate, go = result.gone.get(MORTAL, "alive"), terms.absent
    console.print(
        f"\nε is about one patient's record, certified (claim: {claim}); the error is predicted, root mean square. Each of\n"
        f"the three ways has the law of noise that is best for it: for one mean Laplace, not Gaussian noise.\n"
        f"The masked sum is {gain:.1f} times as accurate as local DP: √{whole}, as {whole} shares make up one curator's noise.\n"
        f"Its error is {price:.2f} times the best curator's: the price of {k} clinics that may collude and {go} that may go.\n\n"
        f"{RUN}mean {mean:.2f} minutes. The truth, which only this demo knows, is {truth:.2f}; off by {abs(mean - truth):.2f}\n"
        f"{RUN}{seconds:.1f} s from all listening to the last answer, which {signed} clinics have signed\n\n"
        f"{MORTAL}: {fate}. It had handed in its masked numbers, and the clinics had not yet agreed whose\n"
        f"numbers to add. The others did so by ballot; any {enough} of {n} can open the one sum that is agreed on, no other.\n"
        f"So its patients count, nobody began again, and the noise was paid for once. All {left} that are left hold the\n"
        f"same answer, to the last bit. {ledgers} of {n} ledgers have the cost in writing, signed, before any number left."
    )
    picture = save_run_picture(result, Path(os.environ.get("NETDP_DEMO", "demo.html")))
    console.print(f"picture: {picture} (open it in a browser; press Play)", soft_wrap=True)


def clinic(home: str, study: str, data: str | None, events: Any, record: str | None = None) -> None:
    """A clinic's process. One dies, as by kill -9, when it hears the first ballot: somebody then holds all contributions."""
    from netdp.peers.launch import party_process

    if Path(home).name == MORTAL:
        from netdp.peers.messages import Item, ItemKind
        from netdp.peers.party import Party

        received = Party.received

        def mortal(self: Party, peer: int, messages: list[Any], *rest: Any, **more: Any) -> None:
            if any(isinstance(one, Item) and one.key.kind == ItemKind.PREPARE for one in messages):
                os.kill(os.getpid(), signal.SIGKILL)
            received(self, peer, messages, *rest, **more)

        Party.received = mortal  # type: ignore[method-assign]
    party_process(home, study, data, events, record)


def watch(progress: Any) -> None:
    """Show how far the clinics are, where somebody watches; None clears the line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{'' if progress is None else progress.words}", end="", file=sys.stderr, flush=True)


def no_answer(result: Any) -> str:
    """What a person reads if the clinics came to no common answer: why not, and what to do."""
    from netdp.report.run import troubles

    patience = result.study.timing.patience
    return "\n".join(
        [
            "The clinics came to no common answer:",
            *(f"  - {trouble}" for trouble in troubles(result)),
            f"Run it again (make demo). Clinics give up on each other after {patience:g} s without news, as on a very busy",
            f"machine: then wait until it is not, or raise patience in {CLINICS.name}/study.toml, beside this program.",
        ]
    )


def what_only_the_demo_knows(task: Any) -> tuple[float, int, float]:
    """The true mean, the number of records, and what noise of deviation 1 in both totals costs: minutes times records.

    The mean is lo + w·A/(A + B), from A = Σ(x − lo)/w and B = Σ(hi − x)/w, w = hi − lo. With f where it lies between lo and hi
    it is off by w·((1 − f)·η_A − f·η_B)/N, to first order.
    """
    import csv

    lo, hi = task.bounds
    with (CLINICS / "waits.csv").open(newline="") as file:
        minutes = [min(max(float(row[task.column]), lo), hi) for row in csv.DictReader(file)]
    truth = math.fsum(minutes) / len(minutes)
    place = (truth - lo) / (hi - lo)
    return truth, len(minutes), (hi - lo) * math.hypot(1 - place, place)


def is_in_ledger(home: Path, study: Any) -> bool:
    """Whether the ledger in a clinic's folder is whole, signed by its owner, and has this study in it."""
    from netdp.peers.identity import Identity
    from netdp.peers.ledger.store import Store

    with Store.open(home / "peer.db", read_only=True) as store:
        store.verify(Identity.load(home).card)
        return any(entry.study == study.hash.hex() for entry in store.entries())


if __name__ == "__main__":
    main()
