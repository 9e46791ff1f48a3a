"""`netdp study`: draft a study, complete it with everybody's card, explain it, sign it, and see who has signed.

Before an owner signs: what the party's own policy says of the study, whether it would be allowed, and what would be left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netdp.cli import flags
from netdp.cli.output import may_write, print_lines, watched, working
from netdp.cli.training import model as write_model
from netdp.cli.training import schema as draft_schema

if TYPE_CHECKING:
    from netdp.peers.identity import Card
    from netdp.peers.ledger.policy import PolicyDecision
    from netdp.peers.result import ResultCheck
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import AnyTask

app = typer.Typer(
    help="The file that all parties sign: draft, complete, explain, sign and verify it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

_MOST_PARTIES = 10_000  # of any study; said before so many names are made

File = Annotated[Path, typer.Argument(help="The study, a TOML file.", show_default=False)]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)]

Cards = Annotated[
    list[Path] | None, typer.Option("--card", help="A party's public card (JSON); repeat it.", show_default=False)
]

Addresses = Annotated[
    list[str] | None,
    typer.Option("--address", help="Where a party listens, NAME=HOST:PORT; repeat it.", show_default=False),
]


_NEW_FLAGS: dict[str, Any] = {
    "name": Annotated[str, typer.Argument(help="What the study is called.", show_default=False)],
    # what is asked
    "task": flags.option(
        str,
        "sum, mean (the default), variance, histogram, table, direction (of a vector; shuffle), train (with --schema), or "
        "scaling, before train.",
    ),
    "column": flags.option(list[str], "The column; repeat it for a table or a direction."),
    "bounds": flags.option(str, "Public range of the numbers: 0,100."),
    "edges": flags.option(str, "histogram of numbers: 0,10,20,50."),
    "bins": flags.option(int, "histogram of numbers: so many between the bounds."),
    "categories": flags.option(list[str], "histogram, table: a,b,c; once per column."),
    "other": flags.option(bool, "Count unlisted values in a cell 'other'.", "--other"),
    "value": flags.option(str, "unit party: single row, or mean, sum, count of its rows."),
    "period": flags.option(
        str, "ring-*: the column that says of which period a row is, for values that change over time."
    ),
    "periods": flags.option(str, "ring-*: the periods in their order, such as jan,feb,mar; or so many, called 1, 2, …"),
    "unit": flags.option(str, "What is protected: party or record. By default party, and record for train."),
    "max_records": flags.option(int, "unit record: the most that a party may have; public."),
    "missing": flags.option(str, "unit record: refuse (the default) or skip rows with empty cells."),
    # what a training needs besides
    "schema": flags.option(Path, "train: the columns and their public ranges; `netdp study schema` drafts it."),
    "label": flags.option(str, "train, without a schema: what is predicted: ill=no|yes, or age=0..99."),
    "feature": flags.option(list[str], "train, without a schema: age=20..60 or sex=f|m; repeat it."),
    "model": flags.option(str, "train: logistic, multinomial, linear (by the label, if left out), or MODULE:FUNCTION."),
    "code": flags.option(Path, "train: the folder with MODULE.py; else the working folder."),
    "records": flags.option(int, "train: about how many rows there are in all; public."),
    "min_records": flags.option(int, "train: the fewest rows that a party may have; public. 2 if left out."),
    "held_out": flags.option(
        float, "train: the share of rows to measure with; 0.1, and 0 for unit party, if left out."
    ),
    "iterations": flags.option(int, "train: how many steps; chosen from the sizes, if left out."),
    "gossip_rounds": flags.option(
        int, "gossip-descent: how often all average after each step; chosen by the graph, if left out."
    ),
    "batch": flags.option(
        int, "gossip-descent, walk-descent: rows drawn anew for a gradient; all of them, if left out."
    ),
    "clip": flags.option(float, "train: gradients are clipped to this; likewise."),
    "step": flags.option(float, "train: how far a step goes; likewise."),
    "sampling": flags.option(float, "train: the chance of a row to be in a step; likewise."),
    "chunk": flags.option(int, "train, torch: rows computed at once; faster, and one assumption more. 1 if left out."),
    # who takes part
    "parties": flags.option(Path, "A file of names, one a line, an address behind each if known."),
    "n": flags.option(int, "Or so many parties, called p00, p01, …"),
    "card": Cards,
    "address": Addresses,
    "graph": flags.option(
        str,
        "Who talks to whom: ring:16, regular:16,6 …; see `netdp graphs`. By default all with all up to 8 parties "
        "and for walk-*, else a ring for ring-*, six neighbours each for the others.",
        "--graph",
        "-g",
    ),
    "links": flags.option(int, "Lay so many random rings over --graph; see `netdp plan --advise`."),
    "links_seed": flags.option(int, "Seed of the random links; by default one that nobody knew before."),
    # what is promised
    "epsilon": flags.option(float, "At most so much is lost about anybody; 1 if left out."),
    "total": flags.option(
        float,
        "scaling, train: instead of --epsilon, at most so much by a scaling study and the training after it, together.",
    ),
    "share": flags.option(float, "scaling, with --total: the share of the budget that it takes; 0.1 if left out."),
    "delta": flags.option(float, "… but for this chance."),
    "colluders": flags.option(int, "… to any so many parties together; shuffle: besides the curator."),
    "attempts": flags.option(int, "How often a party may publish, where it may."),
    "absent": flags.option(int, "How many parties may be missing, where they may."),
    # how
    "protocol": flags.option(
        str,
        "masked-sum (the default), ring-sum, ring-histogram, walk-sum, walk-histogram, gossip, randomized-gossip or shuffle; for "
        "train masked-descent (the default), gossip-descent or walk-descent.",
        "--protocol",
        "-p",
    ),
    "steps": flags.option(int, "walk-*: how many visits each token makes."),
    "tokens": flags.option(int, "walk-*: how many there are."),
    "rounds": flags.option(int, "shuffle: hops of every report; ring-*: times round."),
    "accelerated": flags.option(bool, "gossip: with Chebyshev's weights.", "--accelerated"),
    "edge_probability": flags.option(float, "gossip: a link carries in a round with this chance, by public coins."),
    "wakes": flags.option(int, "randomized-gossip: how often each party begins an exchange."),
    "pace": flags.option(float, "randomized-gossip: seconds between two of them, on average."),
    "refresh": flags.option(
        float, "randomized-gossip, gossip-descent: all fresh noise of a party (of one step), in its initial variance."
    ),
    "reporting": flags.option(str, "shuffle: hand over all reports, or a single one."),
    "laziness": flags.option(float, "shuffle: a report stays for a round with this chance."),
    "cover": flags.option(int, "shuffle: through the curator's server, with at least so many places in each envelope."),
    "curator": flags.option(str, "shuffle: who collects; its name."),
    "spread": flags.option(str, "masked-sum: flood (the default) or average."),
    "law": flags.option(
        str,
        "masked-sum: of the noise: gaussian, laplace, or best (the default): which errs less; ring-sum: "
        "gaussian is the default.",
    ),
    "threshold": flags.option(int, "masked-sum: so many members together open the sum, in one attempt."),
    # when, and where to
    "gather": flags.option(float, "Seconds to wait for everybody at first."),
    "patience": flags.option(float, "Seconds without news before giving up."),
    "output": flags.option(Path, "The file to write.", "--output", "-o"),
    "force": flags.option(bool, "Overwrite the file.", "--force"),
    "json": Json,
}


@app.command("new")
@flags.takes(
    _NEW_FLAGS,
    name=..., other=False, value="single", links=0, delta=1e-6, attempts=1, absent=0, gather=600.0, patience=60.0,
    output=Path("study.toml"), force=False, json=False,
)  # fmt: skip
def new(context: typer.Context, **typed: Any) -> None:
    """Draft a study: choose the noise that keeps the promise, and write everything down.

    With names only it is a draft; give every party's --card and address, here or later with `netdp study complete`, and
    it can be signed.
    """
    import secrets

    with working("loading what plans studies"):
        from netdp.errors import InvalidValue
        from netdp.families import KINDS
        from netdp.peers.kinds import RUNNING
        from netdp.peers.study.planning import kind_for
        from netdp.peers.study.task import Task

    from netdp.cli.training import is_training, planner, scaling, training

    def these(*names: str) -> dict[str, Any]:
        return {name: typed[name] for name in names}

    given = SimpleNamespace(**typed)
    may_write(given.output, given.force)
    trains = is_training(
        given.task, *these("schema", "label", "feature", "model", "records", "min_records", "held_out").values()
    )
    protocol = kind_for(given.protocol, trains)
    cards = _cards(given.card)
    where: dict[str, str] = {}
    if given.parties is not None and given.n is not None:
        raise InvalidValue(f"give --parties {given.parties} or --n {given.n}, not both")
    if given.parties is not None:
        names, where = _names(given.parties)
    elif given.n is not None:
        if not 2 <= given.n <= _MOST_PARTIES:
            raise InvalidValue(f"--n must be 2 to {_MOST_PARTIES:,} parties, got {given.n}")
        names = [f"p{u:0{max(2, len(str(given.n - 1)))}}" for u in range(given.n)]
    elif cards:  # the curator's card may be among them; it is no party
        collects = (given.curator or "curator") if protocol in RUNNING and RUNNING[protocol].has_curator else None
        names = [one.name for one in cards if one.name != collects]
    else:
        raise InvalidValue("who takes part? give --parties FILE, --n NUMBER, or everybody's --card")
    question: AnyTask
    if given.task == "scaling":
        _only_for_numbers(typed)
        question = scaling(
            features=given.feature,
            **these("schema", "unit", "max_records", "missing", "label", "model", "min_records", "held_out", "records"),
        )
    elif trains:
        _only_for_numbers(typed)
        with working("looking at the model"):
            question = training(
                features=given.feature,
                unit=given.unit or ("record" if protocol not in RUNNING or "record" in RUNNING[protocol].units else "party"),
                **these("schema", "label", "model", "max_records", "records", "min_records", "held_out", "missing", "code"),
            )  # fmt: skip
    else:
        question = Task(**_asked(given))
    network = _network(given.graph, len(names), given.links, given.links_seed, protocol)
    if protocol.startswith("walk-") and given.graph is not None and not given.graph.startswith("complete:"):
        typer.echo("looking at every pair of parties on this graph: that may take minutes …", err=True)
    planned = planner(question, given.epsilon, given.total, given.share)
    laws: dict[str, str] = {}
    if (
        (given.law == "best" or (given.law is None and protocol == KINDS[0]))
        and protocol in RUNNING
        and "law" in RUNNING[protocol].options
        and isinstance(question, Task)
    ):
        planned = _by_law(laws)
    study = watched("looking for the least noise that keeps the promise", planned)(
        given.name, question, names,
        graph=network,
        epsilon=next(one for one in (given.total, given.epsilon, 1.0) if one is not None),
        kind=protocol,
        **these("delta", "colluders", "attempts", "absent", "spread", "law", "threshold", "steps", "tokens", "rounds",
                "accelerated", "edge_probability", "wakes", "pace", "refresh", "reporting", "laziness", "cover", "curator",
                "iterations", "clip", "step", "sampling", "chunk", "gossip_rounds", "batch"),
        seed=None if given.edge_probability is None else secrets.token_hex(16),
        timing=these("gather", "patience"), nonce=secrets.token_hex(16),
    )  # fmt: skip
    study = study.complete(cards, where | _addresses(given.address))
    study.write(given.output)
    with working("comparing with masked sums"):
        masked = None if trains or protocol == KINDS[0] else _masked(study)
    _written(study, given.output, given.json, network if given.links else None, masked, laws)


def _by_law(told: dict[str, str]) -> Callable[..., Study]:
    """How a study is planned under the law of noise with the smaller error; `told` is filled with the error under each."""
    from netdp.peers.study.planning import best_of, by_law
    from netdp.report.study.accuracy import error_words

    def planned(*given: Any, **options: Any) -> Study:
        options.pop("law", None)
        found = by_law(*given, **options)
        told.update({law: error_words(study) for law, study in found.items()})
        return best_of(found)

    return planned


def _asked(given: SimpleNamespace) -> dict[str, Any]:
    """What the options of a sum, a mean or a count ask."""
    asked: dict[str, Any] = {"kind": given.task or "mean", "unit": given.unit or "party", "value": given.value}
    asked |= {"other": given.other, "missing": given.missing or "refuse", "max_records": given.max_records}
    if given.column:
        asked |= (
            {"columns": tuple(given.column)}
            if given.task in ("table", "direction")
            else {"column": _single(given.column)}
        )
    if given.bounds is not None:
        asked["bounds"] = tuple(_numbers("--bounds", given.bounds))
    if given.bins is not None:
        asked["bins"] = given.bins
    if given.period is not None:
        asked["period"] = given.period
    if given.periods is not None:
        parts = [part.strip() for part in given.periods.split(",")]
        many = int(parts[0]) if len(parts) == 1 and parts[0].isdecimal() and len(parts[0]) < 6 else 0
        asked["periods"] = tuple(map(str, range(1, many + 1))) if many else tuple(parts)
    if given.edges is not None:
        asked["edges"] = tuple(_numbers("--edges", given.edges))
    if given.categories:
        asked["categories"] = tuple(tuple(part.strip() for part in one.split(",")) for one in given.categories)
    return asked


app.command("schema")(draft_schema)

app.command("model")(write_model)


@app.command("complete")
def complete(
    file: File,
    card: Cards = None,
    address: Addresses = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; the study itself by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Put cards and addresses into a draft. Signatures made before do not fit any more."""
    from netdp.peers.study.study import Study

    study = Study.read(file).complete(_cards(card), _addresses(address))
    study.write(output or file)
    _written(study, output or file, json)


@app.command("explain")
def explain(
    file: File,
    short: Annotated[bool, typer.Option("--short", help="Without what it rests on and who takes part.")] = False,
    json: Json = False,
) -> None:
    """Say in plain words what will be revealed to whom, what that rests on, and who takes part."""
    with working("computing what others can learn"):
        from netdp.peers.study.explanation import RESTS, facts, lines
        from netdp.peers.study.study import Study

        said = facts(Study.read(file))
    told = lines(said)
    print_lines(said, told[: told.index(RESTS) - 1] if short else told, json)


@app.command("sign")
def sign(
    file: File,
    home: Annotated[Path, typer.Option("--home", help="The folder of this party's keys.", show_default=False)],
    code: Annotated[
        Path | None,
        typer.Option("--code", help="The folder with the module of a model that is code; else this folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Explain the study, tell what this party's policy says of it, then sign it with this party's key.

    Refuses a draft, and a study without this party's card. What the policy does not allow is signed all the same, with a warning:
    `netdp peer run` is what refuses it.
    """
    from netdp.cli.training import use_code

    with working("computing what others can learn"):
        from netdp.peers.identity import Identity
        from netdp.peers.study import signatures
        from netdp.peers.study.explanation import facts, lines
        from netdp.peers.study.study import Study
        from netdp.peers.study.training import Training

        identity = Identity.load(home)
        study = Study.read(file)
        verdict, said = policy_verdict(study, home, identity.card.name) if study.is_complete else (None, [])
        unheld = unheld_lines(study, home, identity.card.name)
        told = [] if json else lines(facts(study))
    if not json:
        print("\n".join([*told, "", *said, *([""] if said else []), *unheld]))
    if isinstance(study.task, Training):
        use_code(code)
        study.task.check_source()  # who signs for code has that very file; nothing of it runs
    path = signatures.write(file, identity.card.name, signatures.sign(study, identity))
    data: dict[str, Any] = {"study": study.hash.hex(), "party": identity.card.name, "signature": str(path)}
    data |= {"policy": verdict, "warnings": unheld}
    print_lines(data, [f"Signed by {identity.card.name}: {path}"], json)


@app.command("verify")
def verify(file: File, json: Json = False) -> None:
    """Tell who has signed exactly this study. Ends with status 0 if all have, and 1 if not."""
    from netdp.errors import Refused
    from netdp.peers.study import signatures
    from netdp.peers.study.study import Study

    study = Study.read(file)
    if not study.is_complete:
        raise Refused(f"the study {study.name!r} is a draft; it lacks {'; '.join(study.lacking)}")
    wrong = signatures.problems(study, signatures.read_all(file))
    signed = [name for name in study.everybody if name not in wrong]
    with working("computing what others can learn"):
        epsilon = study.check_promise()
    lines = [f'Study "{study.name}" {study.hash.hex()}', f"  signed by {len(signed)} of {len(study.everybody)}"]
    lines += [f"  {name}: {problem}" for name, problem in wrong.items()]
    lines.append(
        f"  the promise is kept: epsilon {epsilon:.4g} of {study.privacy.epsilon:g} at {study.privacy.delta:g}"
    )
    data = {"study": study.hash.hex(), "all": not wrong, "signed": signed, "problems": wrong, "epsilon": epsilon}
    print_lines(data, lines, json)
    if wrong:
        raise typer.Exit(1)


@app.command("result")
def result(
    file: File,
    home: Annotated[
        Path | None, typer.Option("--home", help="The folder of a party that holds the answer.", show_default=False)
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="Or the folder of netdp up --folder, with all homes.", show_default=False),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--verify", help="Or a result that somebody wrote: check it with the study alone.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the result, with all signatures, to this file (JSON).")
    ] = None,
    json: Json = False,
) -> int:
    """Show, write or check the result of a study whose parties sign their answer.

    Exit status: 0 it fits the study and more parties have signed it than may collude; 1 it does not, with the reason.
    """
    from netdp.errors import InvalidValue
    from netdp.peers import result as results
    from netdp.peers.study.study import Study

    given = [flag for flag, one in (("--home", home), ("--run", run), ("--verify", check)) if one is not None]
    if len(given) != 1:
        raise InvalidValue(
            f"whose result? Give one of --home FOLDER, --run FOLDER and --verify FILE, got {' and '.join(given) or 'none'}"
        )
    study = Study.read(file)
    if check is not None:
        if out is not None:
            raise InvalidValue(f"--verify {check} checks a file and writes none; leave --out {out} out")
        found = results.read(check)
    else:
        if run is not None:
            from netdp.report.study.record import study_of_run

            study, _ = study_of_run(study, file, run)
        results.check_signs(study)
        found = _kept_result(study, {study.name: home} if home is not None else _homes(study, run))
    checked = results.verify(study, found)
    where = str(check or out or home or run)
    if out is not None:
        results.write(out, found)
    print_lines(
        {"file": where, "study": study.hash.hex(), **checked.to_dict()},
        _result_lines(study, found, checked, where),
        json,
    )
    return 0 if checked.ok else 1


def _homes(study: Study, run: Path | None) -> dict[str, Path]:
    """The homes in the folder of a run."""
    assert run is not None
    if (run / "peer.db").exists():
        return {study.name: run}
    return {name: run / name for name in study.names if (run / name / "peer.db").exists()}


def _kept_result(study: Study, homes: Mapping[str, Path]) -> dict[str, Any]:
    """The result that these homes keep, with all signatures that any of them holds."""
    from netdp.errors import InvalidValue
    from netdp.peers import result as results
    from netdp.peers.ledger.store import Store

    found = {}
    for name, home in homes.items():
        with Store.open(home / "peer.db", read_only=True) as store:
            if (kept := store.result(study.hash)) is not None:
                found[name] = results.result_of(study, kept)
    if not found:
        where = ", ".join(map(str, homes.values())) or "there"
        raise InvalidValue(f"no answer of the study {study.name!r} ({study.hash.hex()[:12]}…) is kept in {where}")
    return results.merged(found)


def _result_lines(study: Study, found: Mapping[str, Any], checked: ResultCheck, where: str) -> list[str]:
    """A result in words: the answer, who signed it, what that proves, and what is wrong."""
    import textwrap

    from netdp.cli.peer_progress import answer_lines
    from netdp.peers.result import proved_words

    def text(sentence: str) -> list[str]:
        return textwrap.wrap(sentence, 78, initial_indent="  ", subsequent_indent="  ")

    lines = [f'Result of "{study.name}" {study.hash.hex()[:16]}…: {where}']
    if checked.ok and checked.answer is not None:
        lines += ["", *answer_lines(study, checked.answer, len(found["roster"])), ""]
        lines += text(f"It is of {len(found['roster'])} of {study.n} parties, in attempt {found['attempt']}.")
    if checked.signed:
        lines += text(f"Signed by {len(checked.signed)}: {', '.join(checked.signed)}.")
    if checked.unsigned:
        lines += text(f"Without the signature of {', '.join(checked.unsigned)}, whose numbers are in it.")
    if checked.ok:
        return [*lines, *text(proved_words(study, len(checked.signed))), "It is what the study's parties signed."]
    lines += [line for problem in checked.problems for line in text(f"WRONG: {problem}.")]
    return [*lines, "Do not rely on it."]


# ── what was typed ────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(
    study: Study, path: Path, as_json: bool, drawn: str | None = None, masked_error: float | None = None,
    laws: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    from netdp.peers.study.explanation import facts, lines

    with working("computing what others can learn"):
        said = facts(study)
    then = (
        ["Next, each party reads and signs it:", f"  netdp study sign {path} --home FOLDER"]
        if study.is_complete
        else ["To add what it lacks:", f"  netdp study complete {path} --card CARD --address NAME=HOST:PORT"]
    )
    links = [
        f"It talks along {drawn}; every link of it is in the file.",
        "Random links must be public, and drawn without a look at anybody's data.",
    ]
    better = []
    if masked_error is not None and (factor := said["relative_noise"] / masked_error) > 1.1:
        better = [
            f"With the same promise, masked-sum would have an error {factor:.3g} times smaller (-p masked-sum);",
            "to more parties together than promised it may reveal more: compare what each explains.",
        ]
    from netdp.cli.training import about_scaling

    if laws and len(laws) > 1:
        law = study.settings.law
        others = ", ".join(f"with {other.title()} noise {error}" for other, error in laws.items() if other != law)
        better += [f"The noise is {law.title()} noise, with which the error is {laws[law]}; {others} (--law)."]
    better += about_scaling(study)
    shown = [*lines(said), "", f"Written to {path}.", *(links if drawn else []), *better, *then]
    extra: dict[str, Any] = {"drawn": drawn} if drawn else {}
    extra |= {} if masked_error is None else {"masked_sum_noise": masked_error}
    extra |= {"error_by_law": dict(laws)} if laws else {}
    print_lines({"file": str(path), **said} | extra, shown, as_json)


def _masked(study: Study) -> float | None:
    """The noise of a masked sum with the same promise, in the units of `Study.noise`; None if it cannot be planned."""
    from netdp.errors import NetdpError
    from netdp.families import KINDS

    terms = study.privacy
    colluders = min(max(1, terms.colluders), study.n - 1)
    try:
        other = type(study).plan(
            study.name, study.task, study.names, graph=study.graph, epsilon=terms.epsilon, delta=terms.delta,
            colluders=colluders, attempts=terms.attempts, absent=terms.absent, kind=KINDS[0],
        )  # fmt: skip
    except NetdpError:
        return None
    return float(other.noise())


def _network(graph: str | None, size: int, links: int, seed: int | None, protocol: str) -> str:
    """The graph as text. Links are drawn here and now, when it is known who takes part; the study writes all of them out."""
    import secrets

    from netdp.errors import InvalidValue
    from netdp.graphs.families import checked
    from netdp.graphs.spec import linked

    if graph is None and links:
        raise InvalidValue(f"--links {links} lays random rings over a graph: give --graph, such as ring:{size}")
    if seed is not None and not links:
        raise InvalidValue("--links-seed is about random links; give --links (for example 2), or leave it out")
    plain = graph or _usual(size, protocol)
    return linked(plain, *checked(links, secrets.randbits(63) if seed is None else seed))


def _usual(size: int, protocol: str) -> str:
    """The graph of a protocol if none was given: tokens go round in the order of the list, or from anybody to anybody."""
    if size <= 8 or protocol.startswith("walk-"):
        return f"complete:{size}"
    return f"ring:{size}" if protocol.startswith("ring-") else f"regular:{size},6,seed=0"


def _only_for_numbers(typed: dict[str, Any]) -> None:
    """Refuse options of other tasks where a model is trained."""
    from netdp.errors import InvalidValue

    for name in ("column", "bounds", "edges", "bins", "categories", "period", "periods"):
        if typed[name] is not None and typed[name] != []:
            raise InvalidValue(
                f"--{name} belongs to sums, means and counts; to train, give --schema, or --label and --feature"
            )


def _single(columns: list[str]) -> str:
    from netdp.errors import InvalidValue

    if len(columns) > 1:
        raise InvalidValue(f"several columns, {', '.join(columns)}, belong to --task table; give one --column")
    return columns[0]


def _numbers(flag: str, text: str) -> list[float]:
    from netdp.errors import InvalidValue

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValue(f"{flag} must be numbers with commas between them, such as 0,100; got {text!r}") from None


def _addresses(given: list[str] | None) -> dict[str, str]:
    from netdp.errors import InvalidValue

    out: dict[str, str] = {}
    for text in given or ():
        name, equals, address = text.partition("=")
        if not equals:
            raise InvalidValue(f"--address is NAME=HOST:PORT, such as p00=10.0.0.5:7000; got {text!r}")
        if out.get(name, address) != address:
            raise InvalidValue(f"--address gives {name} twice, {out[name]} and {address}; give one")
        out[name] = address
    return out


def _cards(paths: list[Path] | None) -> list[Card]:
    import json

    from netdp.errors import FileFormatError
    from netdp.peers.identity import Card

    out = []
    for path in paths or ():
        try:
            out.append(Card.from_dict(json.loads(path.read_text("utf-8"))))
        except OSError as error:
            raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
        except ValueError as error:  # JSON, text, and InvalidValue
            raise FileFormatError(path, None, f"is no card: {error}") from None
    return out


def _names(path: Path) -> tuple[list[str], dict[str, str]]:
    from netdp.errors import FileFormatError

    try:
        content = path.read_text("utf-8")
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    names: list[str] = []
    addresses: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if len(words) > 2:
            raise FileFormatError(path, number, f"has {len(words)} words; a line is a name and perhaps its address")
        if words:
            names.append(words[0])
            addresses |= {words[0]: words[1]} if len(words) == 2 else {}
    if not names:
        raise FileFormatError(path, None, "holds no names; write one a line")
    return names, addresses


def policy_verdict(study: Study, home: Path, name: str) -> tuple[dict[str, Any] | None, list[str]]:
    """As plain values and in words; nothing for somebody who hands in no data.

    It is said, and nothing is refused: a limit may be changed before the day. A peer refuses then what is not allowed.
    """
    from netdp.errors import NetdpError, Refused
    from netdp.peers.ledger.policy import OwnerPolicy, PolicyRefused
    from netdp.peers.ledger.store import Store

    if name not in study.names:
        return None, []
    file, ledger = home / "policy.toml", home / "peer.db"
    try:
        policy = OwnerPolicy.read(file)
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
    from netdp.peers.events import Statement
    from netdp.peers.ledger.store import Store
    from netdp.peers.study.planning import unheld_words

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
            said = Statement(
                f"whether this party took part in the study that is named for centres and scales is not known: {unread}"
            )
    return [] if said is None else [f"WARNING: {said}."]


def _line(verdict: PolicyDecision) -> str:
    """One limit: what would be used of it, and what would be left.

    >>> from netdp.peers.ledger.policy import PolicyDecision, SpendingLimit
    >>> limit = SpendingLimit(against=1, per="year", epsilon=3.0)
    >>> print(_line(PolicyDecision(limit, limit.words("2026"), 1.0, 0.5, 1.2)))
      any 1 party, in 2026       1.20 of 3.00 used, 0.500 of it before; 1.8 left
    >>> print(_line(PolicyDecision(limit, limit.words("2026"), 1.0, 2.5, 3.15)))
      any 1 party, in 2026       3.15 of 3.00 used, 2.50 of it before; 0.150 TOO MUCH
    """
    from netdp.numerics.arrays import rounded_down
    from netdp.privacy.wording import readable

    before = f", {readable(verdict.before)} of it before" if verdict.before else ""
    left = verdict.limit.epsilon - verdict.together
    then = f"{rounded_down(left, 3):.3g} left" if verdict.holds else f"{readable(verdict.over)} TOO MUCH"
    return (
        f"  {verdict.words:<26} {readable(verdict.together)} of {readable(verdict.limit.epsilon)} used{before}; {then}"
    )
