"""`make demo`: a private mean over sixteen real peers on this machine; what does each way of doing it reveal?"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# Every clinic is a process that loads this file again: what is heavy is loaded in `main`.
CLINICS = Path(__file__).parent / "clinics"
RUN = "this run: "
"""How lines begin that are different every time: noise, network and clock are real."""


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    from netdp.peers.launch import run_study
    from netdp.peers.study import Study
    from netdp.privacy.wording import readable
    from netdp.protocols.calibration import noise_for
    from netdp.report.run import save_run_picture
    from netdp.report.study.accuracy import comparison

    console = Console(highlight=False, width=max(110, Console().width))
    draft = Study.read(CLINICS / "study.toml")
    task, terms, n = draft.task, draft.privacy, draft.n
    degree = int(draft.graph.degrees[0])
    truth, error_of = what_only_the_demo_knows(task)
    console.print(
        f"[bold]{n} clinics want the mean waiting time of all their patients. None shows its records to anybody.[/bold]\n"
        f"Here each clinic is a process of its own, with its own keys, data and ledger, and encrypted links to\n"
        f"{degree} others. Each publishes sum and count with noise, under one-time pads that cancel when all are added up.\n"
    )
    with tempfile.TemporaryDirectory(prefix="netdp-demo-") as folder:
        result = run_study(CLINICS / "study.toml", CLINICS / "waits.csv", Path(folder), watch=watch)
        watch(None)
        ledgers = sum(is_in_ledger(Path(folder) / name, result.study) for name in result.answered)
    if not result.ok or result.answer is None:
        raise SystemExit(no_answer(result))
    told, study = result.to_dict(), result.study

    k, delta = terms.colluders, terms.delta
    alone = noise_for(task.sensitivity, terms.epsilon, delta)  # what one number needs that everybody may see
    bare = study.plan("bare", task, study.names, graph=f"complete:{n}", epsilon=terms.epsilon, delta=delta)
    promised = [readable(study.promise(size).worst_epsilon(delta)) for size in (1, k)]
    level = readable(terms.epsilon)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(f"promised: ε ≤ {terms.epsilon:g}\nat δ = {delta:g}", no_wrap=True)
    for title in ("error of the\nmean, minutes", "one clinic\nlearns", f"{k} together\nlearn"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("who must be trusted", no_wrap=True)
    table.add_row("local DP: each publishes its own", f"{error_of(alone * math.sqrt(n)):.2f}", level, level, "nobody")
    table.add_row(
        f"masked sum on {n} real peers", f"{error_of(study.noise()):.2f}", *promised, f"nobody, if at most {k} collude",
        style="bold green",
    )  # fmt: skip
    table.add_row("trusted curator", f"{error_of(alone):.2f}", level, level, "the curator, who sees every record")
    console.print(table)

    spent = told["guarantee"]["spent_epsilon"]
    seconds = result.seconds["answered"] - result.seconds["listening"]
    claim, price_of_one = told["guarantee"]["claim"], bare.noise() / alone
    planned_for = f"{k} colluders, {terms.absent} absent clinics and a second attempt"
    once = told["attempt"] == 1
    attempts = "One attempt was enough" if once else "It took two attempts"
    mean = result.answer["value"]
    carried = f"{n} processes, {study.graph.m} links, {told['transcript']['messages']} messages"
    rows = [row for row in comparison(study)["rows"] if row["law"] == "Laplace noise"]
    # asked from both ends, Σ(x − lo) and Σ(hi − x), whose quotient errs by √2 times as much for equal noise, of which half will do
    laplace = {row["way"]: math.sqrt(2) * error_of(row["noise"]) for row in rows}
    ratio, price = error_of(alone * math.sqrt(n)) / error_of(study.noise()), study.noise() / alone
    console.print(
        f"\nε is about one patient's record, certified (claim: {claim}); the error is predicted, root mean square.\n"
        f"The masked sum is {ratio:.1f} times as accurate as local DP, and its error is {price:.2f} times the trusted curator's:\n"
        f"the price of planning for {planned_for}. Planned for single clinics and\n"
        f"one attempt only, it would be {price_of_one:.2f} times. There is no curator. All three use Gaussian noise, which pays\n"
        f"off with more numbers and more clinics. For one mean, Laplace noise would do with less: local DP\n"
        f"{laplace['local DP']:.2f} minutes, a trusted curator {laplace['trusted curator']:.2f}.\n\n"
        f"{RUN}mean {mean:.2f} minutes. The truth, which only this demo knows, is {truth:.2f}; off by {abs(mean - truth):.2f}\n"
        f"{RUN}{carried}, {seconds:.1f} s from all listening to the last answer\n\n"
        f"All {len(result.answered)} hold the same answer, to the last bit. {attempts}; had that been fixed beforehand, a single\n"
        f"clinic would have learned ε = {readable(spent['1'])} at most, any {k} together {readable(spent[str(k)])}. "
        "It was not: who sees an answer\n"
        f"may force a second attempt, so the promise counts. {ledgers} of {n} ledgers have it in writing, signed."
    )
    picture = save_run_picture(result, Path(os.environ.get("NETDP_DEMO", "demo.html")))
    console.print(f"picture: {picture} (open it in a browser; press Play)", soft_wrap=True)


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


def what_only_the_demo_knows(task: Any) -> tuple[float, Any]:
    """The true mean, and the error of the mean (minutes) for so much noise in sum and count.

    The mean is half·(Σz + η₁)/(N + η₂) above the middle of the bounds, so to first order it is off by half·(η₁ − z̄·η₂)/N.
    """
    import csv

    lo, hi = task.bounds
    half = (hi - lo) / 2
    with (CLINICS / "waits.csv").open(newline="") as file:
        minutes = [min(max(float(row[task.column]), lo), hi) for row in csv.DictReader(file)]
    truth = math.fsum(minutes) / len(minutes)
    centred = (truth - (lo + hi) / 2) / half
    return truth, lambda noise: half * noise * math.hypot(1, centred) / len(minutes)


def is_in_ledger(home: Path, study: Any) -> bool:
    """Whether the ledger in a clinic's folder is whole, signed by its owner, and has this study in it."""
    from netdp.peers.identity import Identity
    from netdp.peers.ledger.store import Store

    with Store.open(home / "peer.db", read_only=True) as store:
        store.verify(Identity.load(home).card)
        return any(entry.study == study.hash.hex() for entry in store.entries())


if __name__ == "__main__":
    main()
