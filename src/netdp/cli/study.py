"""`netdp study`: draft a study, complete it with everybody's card, explain it, sign it, and see who has signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .progress import watched, working
from .training import model as write_model
from .training import schema as draft_schema

if TYPE_CHECKING:
    from netdp.peers.identity import Card
    from netdp.peers.study import Scaling, Study, Training

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


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(help="What the study is called.", show_default=False)],
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="sum, mean (the default), variance, histogram, table, train (with --schema), or scaling, before train.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", help="The column; repeat it for a table.", show_default=False)
    ] = None,
    bounds: Annotated[str | None, typer.Option("--bounds", help="Public range of the numbers: 0,100.")] = None,
    edges: Annotated[str | None, typer.Option("--edges", help="histogram of numbers: 0,10,20,50.")] = None,
    bins: Annotated[
        int | None, typer.Option("--bins", help="histogram of numbers: so many between the bounds.")
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option("--categories", help="histogram, table: a,b,c; once per column.", show_default=False),
    ] = None,
    other: Annotated[bool, typer.Option("--other", help="Count unlisted values in a cell 'other'.")] = False,
    value: Annotated[
        str, typer.Option("--value", help="unit party: single row, or mean, sum, count of its rows.")
    ] = "single",
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="What is protected: party or record. By default party, and record for train."),
    ] = None,
    max_records: Annotated[
        int | None, typer.Option("--max-records", help="unit record: the most that a party may have; public.")
    ] = None,
    missing: Annotated[
        str | None, typer.Option("--missing", help="unit record: refuse (the default) or skip rows with empty cells.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="train: the columns and their public ranges; `netdp study schema` drafts it."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="train, without a schema: what is predicted: ill=no|yes, or age=0..99."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature", help="train, without a schema: age=20..60 or sex=f|m; repeat it.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="train: logistic, multinomial, linear (by the label, if left out), or MODULE:FUNCTION."
        ),
    ] = None,
    code: Annotated[
        Path | None, typer.Option("--code", help="train: the folder with MODULE.py; else the working folder.")
    ] = None,
    records: Annotated[
        int | None, typer.Option("--records", help="train: about how many rows there are in all; public.")
    ] = None,
    min_records: Annotated[
        int | None,
        typer.Option("--min-records", help="train: the fewest rows that a party may have; public. 2 if left out."),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            "--held-out", help="train: the share of rows to measure with; 0.1, and 0 for unit party, if left out."
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", help="train: how many steps; chosen from the sizes, if left out.")
    ] = None,
    clip: Annotated[
        float | None, typer.Option("--clip", help="train: gradients are clipped to this; likewise.")
    ] = None,
    step: Annotated[float | None, typer.Option("--step", help="train: how far a step goes; likewise.")] = None,
    sampling: Annotated[
        float | None, typer.Option("--sampling", help="train: the chance of a row to be in a step; likewise.")
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk", help="train, torch: rows computed at once; faster, and one assumption more. 1 if left out."
        ),
    ] = None,
    parties: Annotated[
        Path | None, typer.Option("--parties", help="A file of names, one a line, an address behind each if known.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Or so many parties, called p00, p01, …")] = None,
    card: Cards = None,
    address: Addresses = None,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            "-g",
            help="Who talks to whom: ring:16, regular:16,6 …; see `netdp graphs`. By default all with all up to 8 parties "
            "and for walk-*, else a ring for ring-*, six neighbours each for the others.",
        ),
    ] = None,
    links: Annotated[
        int, typer.Option("--links", help="Lay so many random rings over --graph; see `netdp plan --advise`.")
    ] = 0,
    links_seed: Annotated[
        int | None,
        typer.Option("--links-seed", help="Seed of the random links; by default one that nobody knew before."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="At most so much is lost about anybody; 1 if left out.", show_default=False),
    ] = None,
    total: Annotated[
        float | None,
        typer.Option(
            "--total",
            help="scaling, train: instead of --epsilon, at most so much by a scaling study and the training after it, together.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", help="scaling, with --total: the share of the budget that it takes; 0.1 if left out."),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="… but for this chance.")] = 1e-6,
    colluders: Annotated[
        int | None, typer.Option("--colluders", help="… to any so many parties together; shuffle: besides the curator.")
    ] = None,
    attempts: Annotated[int, typer.Option("--attempts", help="How often a party may publish, where it may.")] = 1,
    absent: Annotated[int, typer.Option("--absent", help="How many parties may be missing, where they may.")] = 0,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            "-p",
            help="masked-sum (the default), masked-descent (for train), ring-sum, ring-histogram, walk-sum, walk-histogram, "
            "gossip, randomized-gossip or shuffle.",
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="walk-*: how many visits each token makes.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", help="walk-*: how many there are.")] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="shuffle: hops of every report; ring-histogram: times round.")
    ] = None,
    wakes: Annotated[
        int | None, typer.Option("--wakes", help="randomized-gossip: how often each party begins an exchange.")
    ] = None,
    pace: Annotated[
        float | None, typer.Option("--pace", help="randomized-gossip: seconds between two of them, on average.")
    ] = None,
    refresh: Annotated[
        float | None,
        typer.Option("--refresh", help="randomized-gossip: all fresh noise of a party, in its initial variance."),
    ] = None,
    reporting: Annotated[
        str | None, typer.Option("--reporting", help="shuffle: hand over all reports, or a single one.")
    ] = None,
    laziness: Annotated[
        float | None, typer.Option("--laziness", help="shuffle: a report stays for a round with this chance.")
    ] = None,
    cover: Annotated[
        int | None,
        typer.Option(
            "--cover", help="shuffle: through the curator's server, with at least so many places in each envelope."
        ),
    ] = None,
    curator: Annotated[str | None, typer.Option("--curator", help="shuffle: who collects; its name.")] = None,
    spread: Annotated[str | None, typer.Option("--spread", help="masked-sum: flood (the default) or average.")] = None,
    gather: Annotated[float, typer.Option("--gather", help="Seconds to wait for everybody at first.")] = 600.0,
    patience: Annotated[float, typer.Option("--patience", help="Seconds without news before giving up.")] = 60.0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("study.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    json: Json = False,
) -> None:
    """Draft a study: choose the noise that keeps the promise, and write everything down.

    With names only it is a draft; give every party's --card and address, here or later with `netdp study complete`, and
    it can be signed.
    """
    import secrets

    with working("loading what plans studies"):
        from netdp.errors import InvalidValue
        from netdp.peers.kinds import KINDS, RUNNING
        from netdp.peers.study.plan import LEARNING
        from netdp.peers.study.task import Task

    from .training import is_training, planner, scaling, training

    may_write(output, force)
    trains = is_training(task, schema, label, feature, model, records, min_records, held_out)
    protocol = protocol or (LEARNING if trains else KINDS[0])
    cards = _cards(card)
    where: dict[str, str] = {}
    if parties is not None and n is not None:
        raise InvalidValue(f"give --parties {parties} or --n {n}, not both")
    if parties is not None:
        names, where = _names(parties)
    elif n is not None:
        if not 2 <= n <= _MOST_PARTIES:
            raise InvalidValue(f"--n must be 2 to {_MOST_PARTIES:,} parties, got {n}")
        names = [f"p{u:0{max(2, len(str(n - 1)))}}" for u in range(n)]
    elif cards:  # the curator's card may be among them; it is no party
        collects = (curator or "curator") if protocol in RUNNING and RUNNING[protocol].has_curator else None
        names = [one.name for one in cards if one.name != collects]
    else:
        raise InvalidValue("who takes part? give --parties FILE, --n NUMBER, or everybody's --card")
    asked: dict[str, Any] = {"kind": task or "mean", "unit": unit or "party", "value": value, "other": other}
    asked |= {"missing": missing or "refuse", "max_records": max_records}
    if column:
        asked |= {"columns": tuple(column)} if task == "table" else {"column": _single(column)}
    if bounds is not None:
        asked["bounds"] = tuple(_numbers("--bounds", bounds))
    if bins is not None:
        asked["bins"] = bins
    if edges is not None:
        asked["edges"] = tuple(_numbers("--edges", edges))
    if categories:
        asked["categories"] = tuple(tuple(part.strip() for part in one.split(",")) for one in categories)
    question: Task | Training | Scaling
    if task == "scaling":
        _only_for_numbers(column, bounds, edges, bins, categories)
        question = scaling(
            schema=schema, features=feature, unit=unit, max_records=max_records, missing=missing, label=label, model=model,
            min_records=min_records, held_out=held_out, records=records,
        )  # fmt: skip
    elif trains:
        _only_for_numbers(column, bounds, edges, bins, categories)
        with working("looking at the model"):
            question = training(
                schema=schema, features=feature, label=label, model=model, unit=unit, max_records=max_records, records=records,
                min_records=min_records, held_out=held_out, missing=missing, code=code,
            )  # fmt: skip
    else:
        question = Task(**asked)
    size = len(names)
    network = _network(graph, size, links, links_seed, protocol)
    if protocol.startswith("walk-") and graph is not None and not graph.startswith("complete:"):
        typer.echo("looking at every pair of parties on this graph: that may take minutes …", err=True)
    study = watched("looking for the least noise that keeps the promise", planner(question, epsilon, total, share))(
        name, question, names,
        graph=network,
        epsilon=next(one for one in (total, epsilon, 1.0) if one is not None),
        delta=delta, colluders=colluders, attempts=attempts, absent=absent,
        kind=protocol, spread=spread,
        steps=steps, tokens=tokens, rounds=rounds, wakes=wakes, pace=pace, refresh=refresh, reporting=reporting, laziness=laziness,
        cover=cover, curator=curator, iterations=iterations, clip=clip, step=step, sampling=sampling, chunk=chunk,
        timing={"gather": gather, "patience": patience}, nonce=secrets.token_hex(16),
    )  # fmt: skip
    study = study.complete(cards, where | _addresses(address))
    study.write(output)
    with working("comparing with masked sums"):
        masked = None if trains or protocol == KINDS[0] else _masked(study)
    _written(study, output, json, network if links else None, masked)


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
    from netdp.peers.study import Study

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
        from netdp.peers.study import Study
        from netdp.peers.study.explained import RESTS, facts, lines

        said = facts(Study.read(file))
    told = lines(said)
    _show(said, told[: told.index(RESTS) - 1] if short else told, json)


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
    from .training import use_code
    from .verdict import policy_verdict, unheld_lines

    with working("computing what others can learn"):
        from netdp.peers.identity import Identity
        from netdp.peers.study import Study, Training, signatures
        from netdp.peers.study.explained import facts, lines

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
    _show(data, [f"Signed by {identity.card.name}: {path}"], json)


@app.command("verify")
def verify(file: File, json: Json = False) -> None:
    """Tell who has signed exactly this study. Ends with status 0 if all have, and 1 if not."""
    from netdp.errors import Refused
    from netdp.peers.study import Study, signatures

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
    _show(data, lines, json)
    if wrong:
        raise typer.Exit(1)


# ── what was typed ────────────────────────────────────────────────────────────────────────────────────────────────────


def _show(data: dict[str, Any], lines: list[str], as_json: bool) -> None:
    import json

    print(json.dumps(data, allow_nan=False) if as_json else "\n".join(lines))


def _written(
    study: Study, path: Path, as_json: bool, drawn: str | None = None, masked_error: float | None = None
) -> None:
    from netdp.peers.study.explained import facts, lines

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
    from .training import about_scaling

    better += about_scaling(study)
    shown = [*lines(said), "", f"Written to {path}.", *(links if drawn else []), *better, *then]
    extra = ({"drawn": drawn} if drawn else {}) | ({} if masked_error is None else {"masked_sum_noise": masked_error})
    _show({"file": str(path), **said} | extra, shown, as_json)


def _masked(study: Study) -> float | None:
    """The noise of a masked sum with the same promise, in the units of `Study.noise`; None if it cannot be planned."""
    from netdp.errors import NetdpError
    from netdp.peers.kinds import KINDS

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


def may_write(path: Path, force: bool) -> None:
    """Refuse to write over a file that is there, unless that was asked for."""
    from netdp.errors import InvalidValue

    if path.exists() and not force:
        raise InvalidValue(f"{path} is there already; give another --output, or --force to overwrite it")


def _network(graph: str | None, size: int, links: int, seed: int | None, protocol: str) -> str:
    """The graph as text. Links are drawn here and now, when it is known who takes part; the study writes all of them out."""
    import secrets

    from netdp.errors import InvalidValue
    from netdp.graphs.links import checked
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


def _only_for_numbers(*given: Any) -> None:
    """Refuse options of other tasks where a model is trained."""
    from netdp.errors import InvalidValue

    for flag, value in zip(("--column", "--bounds", "--edges", "--bins", "--categories"), given, strict=True):
        if value is not None and value != []:
            raise InvalidValue(
                f"{flag} belongs to sums, means and counts; to train, give --schema, or --label and --feature"
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
