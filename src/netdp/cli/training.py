"""Training from the command line: what `netdp study new` makes of its options, and a schema to fill in, from a header alone."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from netdp.peers.study import Study, Training

HELD_OUT = 0.1
"""The share of rows that is held out unless it is said otherwise, where records are protected: there it costs no privacy."""


def schema(
    table: Annotated[
        Path, typer.Argument(help="A table of one of the parties, CSV or Parquet. Only its first line is read.")
    ],
    label: Annotated[
        str | None, typer.Option("--label", help="The column to predict; by default the last one.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("schema.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Draft a schema for training from the names of the columns alone. No row is read: ranges are for you to fill in.

    A range or a list of values that is read off the rows is an answer about them that nobody accounts for. Write what is
    publicly known.
    """
    from netdp.errors import InvalidValue
    from netdp.peers.study.schema_file import columns_of, drafted

    if output.exists() and not force:
        raise InvalidValue(f"{output} is there already; give another --output, or --force to overwrite it")
    columns = columns_of(table)
    output.write_text(drafted(columns, label), "utf-8")
    print(f"Written to {output}: {len(columns)} columns, by their names alone; no row of {table} was read.")
    print('Fill in what is publicly known in place of every "?", then:')
    print(f"  netdp study new NAME --schema {output} --max-records ROWS --n PARTIES")


def is_training(task: str | None, *given: Any) -> bool:
    """Whether a model is to be trained: asked for by name, or by options that only training has."""
    from netdp.errors import InvalidValue

    hinted = any(one is not None and one != [] for one in given)
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
    from netdp.peers.study import Training
    from netdp.peers.study.schema_file import feature, read_schema, typed

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
    from netdp.peers.study import Study, Training

    study = Study.read(path)
    if not isinstance(study.task, Training):
        return [], out
    out = out or path.parent / "model"
    return [f"netdp: {line}" for line in before(study, out)], out


def before(study: Study, out: Path | None) -> list[str]:
    """The same of a study at hand; refuses a place for the model that is taken."""
    from netdp.errors import InvalidValue
    from netdp.peers.study import Training
    from netdp.peers.study.cost import cost_lines
    from netdp.peers.trained import check_free

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
    from netdp.peers.trained import write_model

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
    from netdp.peers.study import Study
    from netdp.peers.trained import write_model

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
