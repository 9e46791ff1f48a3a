"""Training from the command line: what `netdp study new` makes of its options, and a schema to fill in, from a header alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netdp.cli.output import may_write

if TYPE_CHECKING:
    from netdp.peers.study.scaling import ScalingTask
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import Training

HELD_OUT = 0.1
"""The share of rows that is held out unless it is said otherwise, where records are protected: there it costs no privacy."""


def schema(
    table: Annotated[
        Path,
        typer.Argument(
            help="A table of one of the parties, CSV or Parquet. Only its first line is read. With --scaled-by: a schema."
        ),
    ],
    scaled_by: Annotated[
        Path | None,
        typer.Option(
            "--scaled-by",
            metavar="RESULT.json",
            help="Put centres and scales into a schema: the result of a study with --task scaling, as JSON.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The column to predict; by default the last one.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("schema.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Draft a schema for training from the names of the columns alone. No row is read: ranges are for you to fill in.

    A range or a list of values that is read off the rows is an answer about them that nobody accounts for. Write what is
    publicly known.

    With --scaled-by: the schema that a scaling study was made from, with the centres and scales that it has found. Train with that.
    """
    from netdp.errors import InvalidValue
    from netdp.peers.study.files import columns_of, drafted

    may_write(output, force)
    if scaled_by is not None:
        if label is not None:
            raise InvalidValue(f"--label {label} is in the schema {table} already; leave it out")
        _scaled(table, scaled_by, output)
        return
    columns = columns_of(table)
    output.write_text(drafted(columns, label), "utf-8")
    print(f"Written to {output}: {len(columns)} columns, by their names alone; no row of {table} was read.")
    print('Fill in what is publicly known in place of every "?", then:')
    print(f"  netdp study new NAME --schema {output} --max-records ROWS --n PARTIES")


def _scaled(schema: Path, result: Path, output: Path) -> None:
    """Write a schema with the centres and scales of a result, and say how good they are."""
    from netdp.peers.study.files import read_answer, scaled_by
    from netdp.peers.study.scaling import POOR

    answer = read_answer(result)
    output.write_text(scaled_by(schema, answer), "utf-8")
    count, noise = len(answer["features"]), float(answer["noise"])
    what = f"{count} column{'s' * (count > 1)}"
    print(f"Written to {output}: {schema} with centre and scale of {what}, as {result} has them.")
    print(f"Noise moves a centre by {noise:.2g} of half its range.", end="" if noise > POOR else "\n")
    if noise > POOR:
        print(" That is much: scaling will hardly help; more rows, or a larger share of the budget, would.")
    print("Both studies are added up in every party's ledger. To promise a total for both:")
    print(f"  netdp study new NAME --schema {output} --total EPSILON --max-records ROWS --n PARTIES")


def scaling(
    *,
    schema: Path | None,
    features: list[str] | None,
    unit: str | None,
    max_records: int | None,
    missing: str | None,
    **others: Any,
) -> ScalingTask:
    """What a scaling study asks, from a schema file or from columns that were typed: those that are numbers."""
    from netdp.errors import InvalidValue
    from netdp.peers.study.files import feature, read_schema, typed
    from netdp.peers.study.scaling import ScalingTask

    for name, value in others.items():
        if value is not None:
            raise InvalidValue(f"--{name.replace('_', '-')} {value} belongs to --task train, which comes after scaling")
    if (schema is None) == (not features):
        raise InvalidValue(
            "which columns? give --schema FILE, the one to train with, or a --feature age=20..60 for each"
        )
    typed_columns: dict[str, Any] = {"features": [feature(*typed("--feature", one)) for one in features or ()]}
    fields = typed_columns if schema is None else read_schema(schema)
    if "scaled" in fields or any("centre" in one for one in fields["features"]):
        raise InvalidValue(f"the schema {schema} has centres and scales already; scale the one without them")
    ranged = [one for one in fields["features"] if "range" in one]
    if not ranged:
        raise InvalidValue(
            "no column of these is a number, so there is nothing to scale; train with the schema as it is"
        )
    asked: dict[str, Any] = {"features": ranged, "unit": unit or "record", "max_records": max_records}
    return ScalingTask(**asked | {"missing": missing or fields.get("missing", "refuse")})


def is_training(task: str | None, *given: Any) -> bool:
    """Whether a model is to be trained: asked for by name, or by options that only training has."""
    from netdp.errors import InvalidValue

    hinted = any(one is not None and one != [] for one in given)
    if task == "scaling":
        return False
    if task is not None and task != "train" and hinted:
        raise InvalidValue(
            f"--schema, --feature, --label and --model belong to --task train, not to {task}; leave them out, or leave --task out"
        )
    return task == "train" or hinted


def training(
    *,
    schema: Path | None,
    features: list[str] | None,
    label: str | None,
    model: str | None,
    unit: str | None,
    max_records: int | None,
    min_records: int | None,
    records: int | None,
    held_out: float | None,
    missing: str | None,
    code: Path | None,
) -> Training:
    """What is asked, from a schema file or from columns that were typed."""
    from netdp.errors import InvalidValue
    from netdp.models.code import is_code
    from netdp.peers.study.files import feature, read_schema, typed
    from netdp.peers.study.training import Training

    fields: dict[str, Any]
    if schema is not None:
        if features or label:
            raise InvalidValue(f"--schema {schema} says which columns there are; leave --feature and --label out")
        fields = read_schema(schema)
    else:
        if not features or label is None:
            raise InvalidValue(
                "which columns? give --schema FILE (`netdp study schema TABLE` drafts one), or --label ill=no|yes and a --feature "
                "age=20..60 for every column"
            )
        name, values = typed("--label", label)
        said = feature(name, values)
        fields = {"label": name, "features": [feature(*typed("--feature", one)) for one in features]}
        fields |= {"label_range": said["range"]} if "range" in said else {"classes": said["values"]}
    fields["unit"] = unit or "record"
    for key, value in (
        ("model", model), ("max_records", max_records), ("min_records", min_records), ("records", records), ("missing", missing),
    ):  # fmt: skip
        if value is not None:
            fields[key] = value
    fields["held_out"] = held_out if held_out is not None else HELD_OUT if fields["unit"] == "record" else 0.0
    use_code(code)
    named = fields.get("model", "")
    if isinstance(named, str) and is_code(named):
        return Training.of_code(**fields)
    return Training(**fields)


def planner(question: Any, epsilon: float | None, total: float | None, share: float | None) -> Callable[..., Study]:
    """How a study is planned: for an ε of its own, or for a total that scaling and training share."""
    from functools import partial

    from netdp.errors import InvalidValue
    from netdp.peers.study.planning import SHARE, plan_scaling, plan_training_after
    from netdp.peers.study.scaling import ScalingTask
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import Training

    if share is not None and (total is None or not isinstance(question, ScalingTask)):
        raise InvalidValue(
            f"--share {share:g} is the part of a --total that --task scaling takes; give both, or neither"
        )
    if total is None:
        return Study.plan
    if epsilon is not None:
        raise InvalidValue(
            f"--epsilon {epsilon:g} and --total {total:g}: the total says what is left for this study; give one"
        )
    if isinstance(question, ScalingTask):
        return partial(plan_scaling, share=SHARE if share is None else share)
    if isinstance(question, Training):
        return plan_training_after
    raise InvalidValue(f"--total {total:g} is for --task scaling and the training after it; give --epsilon")


def about_scaling(study: Study) -> list[str]:
    """That a training may do better after a scaling study, where it has none; and what to do with the answer of one."""
    from netdp.peers.study.scaling import ScalingTask
    from netdp.peers.study.training import Training

    if isinstance(study.task, ScalingTask):
        return [
            "When it has run (netdp peer run --json, or netdp up --json), its result makes the schema to train with:",
            "  netdp study schema SCHEMA --scaled-by RESULT.json -o scaled.toml",
        ]
    if (
        isinstance(study.task, Training)
        and study.task.ranged
        and not any(one.column.is_centred for one in study.task.features)
    ):
        return [
            "Columns that fill a small part of their ranges are learned much better after a study that finds their centre and",
            "scale privately, within the same budget: netdp study new NAME --task scaling --schema SCHEMA --total EPSILON …",
        ]
    return []


def use_code(folder: Path | None) -> None:
    """Look for modules of models in this folder first; parties that are started from here do, too."""
    from netdp.errors import InvalidValue

    if folder is None:
        return
    if not folder.is_dir():
        raise InvalidValue(f"--code {folder} is no folder; give the one with the module of the model in it")
    sys.path.insert(0, str(folder.resolve()))


def announce(path: Path, out: Path | None) -> tuple[list[str], Path | None]:
    """What a training will cost, said before it starts, and where its model will go; nothing for other studies."""
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import Training

    study = Study.read(path)
    if not isinstance(study.task, Training):
        return [], out
    out = out or path.parent / "model"
    return [f"netdp: {line}" for line in before(study, out)], out


def before(study: Study, out: Path | None) -> list[str]:
    """The same of a study at hand; refuses a place for the model that is taken."""
    from netdp.errors import InvalidValue
    from netdp.peers.study.progress import check_free, cost_lines
    from netdp.peers.study.training import Training

    if not isinstance(study.task, Training):
        if out is not None:
            raise InvalidValue(
                f"--out {out} is for a model, and this study asks for {study.task.describe()}; leave it out"
            )
        return []
    if out is not None:
        check_free(out, study)
    return cost_lines(study)


def model_lines(study: Study, home: Path, out: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Write the model of a study from a party's home; where it is, as plain values and in words. Nothing for other studies.

    The answer is here whatever happens to a file: what cannot be written is said, with the way to write it later.
    """
    from netdp.errors import NetdpError
    from netdp.peers.study.progress import write_model

    try:
        files = write_model(study, home)
        if files is not None and out is not None:
            files = write_model(study, home, out)
    except NetdpError as problem:
        later = f"netdp study model STUDY --home {home} --out FOLDER"
        return {"model_error": str(problem)}, [f"The model is in {home / 'peer.db'}, but {problem}; later: {later}"]
    if files is None:
        return {}, []
    lines = [f"Model: {files['model.npz']}   card: {files['MODEL_CARD.md']}"]
    return {"files": {name: str(path) for name, path in files.items()}}, lines


def model(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="The study, a TOML file.", show_default=False)],
    home: Annotated[Path, typer.Option("--home", help="The folder of a party that took part.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write it; by default a folder of its own in the home.")
    ] = None,
) -> None:
    """Write the model that a study has trained, and its card, from what a party holds. It can be done again at any time."""
    from netdp.errors import InvalidValue
    from netdp.peers.study.progress import write_model
    from netdp.peers.study.study import Study

    study = Study.read(file)
    files = write_model(study, home, out)
    if files is None:
        raise InvalidValue(f"{home} holds no model of {study.name!r}: it trains none, or has not come to its end there")
    print(f"Model: {files['model.npz']}   card: {files['MODEL_CARD.md']}")


class Plain:
    """Progress of a training where no terminal shows it live: a line now and then."""

    EVERY = 10.0

    def __init__(self) -> None:
        self._when, self._words = time.monotonic(), ""

    def __call__(self, words: str) -> None:
        """How far it is."""
        now = time.monotonic()
        if words != self._words and words.startswith("iteration") and now >= self._when + self.EVERY:
            self._when, self._words = now, words
            print(f"netdp: {words}", file=sys.stderr, flush=True)
