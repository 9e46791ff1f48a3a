"""Running experiments: one folder per experiment, whole files only, and a long run goes on where it was broken off.

    OUT/000-fig2b/quick/      data.csv  tables.csv  comparisons.csv  figure.pdf  figure.svg  figure.png  result.json
    OUT/000-fig2b/full/parts/ one small JSON file per finished part of a long run
    OUT/comparisons.csv       every comparison with a document, a line each
    OUT/index.html            the page

A full run whose `result.json` was written by the same version and source is done and is not run again (`again=True`
does); a quick one always runs. Parts are what an experiment hands to `Work.map`: pure functions of one JSON-able item,
results JSON-able. Each finished part of a full run is a file; a run that was killed reads them and computes the rest.
They go through the engine (`netdp.engines`): results come in the order of the items, and seeds belong to items, so every
engine gives the same numbers. Quick experiments are short: whole experiments are handed out instead (`reproduce_all`).
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import netdp
from netdp.engines.maps import map_items
from netdp.errors import DataNotFound, MissingDependency
from netdp.numerics.arrays import Progress
from netdp.papers.drawing import pictures
from netdp.papers.experiment import Agreement, Experiment, Observation, Result, Size, columns
from netdp.privacy.guarantee import Claim
from netdp.report.style import write_whole

K = TypeVar("K")


@dataclass
class Work:
    """What an experiment may use while it runs: progress, and a map whose finished parts survive a crash."""

    folder: Path | None = None
    progress: Progress | None = None

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """`function` of every item, in order. Items and results are JSON-able; `function` is a module's function."""
        todo = list(items)
        name = f"{function.__module__}.{function.__qualname__}"
        code = _hash_of(function)  # parts that other code left behind are not taken
        files = [self._file(f"{name} {code}", item) for item in todo]
        results: list[Any] = [_read(file) for file in files]
        missing = [place for place, result in enumerate(results) if result is None]
        done = len(todo) - len(missing)
        for place, value in zip(missing, map_items(function, [todo[p] for p in missing]), strict=True):
            results[place] = {"value": value}
            file = files[place]
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, _dumps(results[place]).encode())
            done += 1
            if self.progress is not None:
                self.progress(done, len(todo))
        # what was computed now and what was read from a file must not differ: both go through JSON
        return [json.loads(_dumps(result))["value"] for result in results]

    def by_key(self, function: Callable[[Any], Any], items: Mapping[K, Any] | Iterable[K]) -> dict[K, Any]:
        """`function` of every item, under its key; items of a plain list are their own keys."""
        wanted = items if isinstance(items, Mapping) else {item: item for item in items}
        return dict(zip(wanted, self.map(function, wanted.values()), strict=True))

    def _file(self, name: str, item: Any) -> Path | None:
        if self.folder is None:
            return None
        key = hashlib.sha256(json.dumps([name, netdp.__version__, item], sort_keys=True).encode()).hexdigest()[:20]
        return self.folder / "parts" / f"{key}.json"


def _read(file: Path | None) -> Any:
    if file is None or not file.exists():
        return None
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError:
        return None  # not ours, or damaged: computed again


@dataclass(frozen=True)
class Report:
    """What is left of an experiment after its run: what the page and `--json` show."""

    experiment: Experiment
    size: Size
    verdict: Agreement
    seconds: float
    settings: dict[str, Any]
    findings: tuple[Observation, ...]
    files: tuple[str, ...]
    why: str = ""
    """Of `NOT_HERE`: what is missing, and what of the rest was left out."""
    comparisons: tuple[dict[str, Any], ...] = ()
    """As `Comparison.to_dict` gives them."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.experiment.id,
            "paper": self.experiment.paper,
            "place": self.experiment.place,
            "title": self.experiment.title,
            "size": self.size.value,
            "verdict": self.verdict.value,
            "errata": list(self.experiment.errata),
            "seconds": round(self.seconds, 2),
            "settings": self.settings,
            "comparisons": list(self.comparisons),
            "findings": [_finding(finding) for finding in self.findings],
            "files": list(self.files),
            "why": self.why,
            "version": netdp.__version__,
            "source": _source(self.experiment),
        }

    @classmethod
    def read(cls, experiment: Experiment, out: Path, size: Size) -> Report | None:
        """What an earlier run left, if it was by this version and this source and all its files are there."""
        found = _read(out / experiment.id / size.value / "result.json")
        if not found or (found.get("version"), found.get("source")) != (netdp.__version__, _source(experiment)):
            return None
        if not all((out / file).exists() for file in found["files"]):
            return None
        findings = tuple(
            Observation(**{**part, "claim": None if part["claim"] is None else Claim(part["claim"])})
            for part in found["findings"]
        )
        verdict, files = Agreement(found["verdict"]), tuple(found["files"])
        made = tuple(found["comparisons"])
        return cls(experiment, size, verdict, found["seconds"], found["settings"], findings, files, found["why"], made)


def reproduce(
    experiment: Experiment,
    out: Path,
    size: Size = Size.QUICK,
    progress: Progress | None = None,
    *,
    again: bool = False,
) -> Report:
    """Run one experiment and write its folder; errors of the experiment itself are not hidden."""
    earlier = Report.read(experiment, out, size) if size is Size.FULL and not again else None
    if earlier is not None and earlier.verdict is not Agreement.NOT_HERE:
        return earlier
    folder = out / experiment.id / size.value
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    why = ""
    try:
        result = experiment.run(size, Work(folder if size is Size.FULL else None, progress))
    except (DataNotFound, MissingDependency) as error:
        report = Report(experiment, size, Agreement.NOT_HERE, time.monotonic() - started, {}, (), (), str(error))
        write_whole(folder / "result.json", _dumps(report.to_dict()).encode())
        return report
    if result.missing:
        why = "left out: " + "; ".join(result.missing)
    files = _write(experiment, result, folder)
    report = Report(
        experiment,
        size,
        experiment.verdict(result),
        time.monotonic() - started,
        result.settings,
        result.findings,
        tuple(f"{experiment.id}/{size.value}/{name}" for name in files),
        why,
        tuple(one.to_dict() for one in result.comparisons),
    )
    write_whole(folder / "result.json", _dumps(report.to_dict()).encode())
    return report


def reproduce_all(
    experiments: Sequence[Experiment], out: Path, size: Size, progress: Progress | None = None, *, again: bool = False
) -> Iterator[Report]:
    """The experiments in their order: quick ones side by side, full ones one after the other, the parts of each side by side."""
    if size is Size.QUICK and len(experiments) > 1:
        yield from map_items(_quick, experiments, shared=(out,), progress=progress)
        return
    for experiment in experiments:
        yield reproduce(experiment, out, size, progress, again=again)


def _quick(out: Path, experiment: Experiment) -> Report:
    return reproduce(experiment, out, Size.QUICK)


def _source(experiment: Experiment) -> str:
    """A hash of the file that holds the experiment: other code, other run."""
    return _hash_of(experiment.run)


def _hash_of(function: Callable[..., Any]) -> str:
    """A hash of the file that holds a function, of a partial one's that it is made of."""
    file = inspect.getsourcefile(function.func if isinstance(function, partial) else function)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""


def _write(experiment: Experiment, result: Result, folder: Path) -> list[str]:
    names = []
    if result.panels:
        write_whole(folder / "data.csv", _curves_csv(result).encode())
        names.append("data.csv")
    if result.tables:
        write_whole(folder / "tables.csv", _tables_csv(result).encode())
        names.append("tables.csv")
    if result.comparisons:
        made = [(experiment.id, one.to_dict()) for one in result.comparisons]
        write_whole(folder / "comparisons.csv", comparisons_csv(made).encode())
        names.append("comparisons.csv")
    for kind, content in pictures(result, f"{experiment.place}: {experiment.title}").items():
        write_whole(folder / f"figure.{kind}", content)
        names.append(f"figure.{kind}")
    return names


def comparisons_csv(made: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """A line for every comparison, each with the name of its figure or table."""
    text = io.StringIO()
    keys = ("what", "basis", "document", "ours", "tolerance", "agrees", "erratum", "note")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", *keys])
    writer.writerows([name, *(_yes(one[key]) for key in keys)] for name, one in made)
    return text.getvalue()


def _yes(value: Any) -> Any:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _curves_csv(result: Result) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["panel", "curve", "kind", "x", "y", "low", "high"])
    for panel in result.panels:
        for series in panel.series:
            part = columns(series)
            for row in zip(part["x"], part["y"], part["low"], part["high"], strict=True):
                writer.writerow([panel.title, series.label, series.kind.value, *map(_number, row)])
    return text.getvalue()


def _tables_csv(result: Result) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for table in result.tables:
        writer.writerow([f"# {table.title}"])
        writer.writerow(table.columns)
        writer.writerows([_number(cell) if isinstance(cell, float) else cell for cell in row] for row in table.rows)
    return text.getvalue()


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def _finding(finding: Observation) -> dict[str, Any]:
    return {
        "what": finding.what,
        "holds": finding.holds,
        "printed": _json_number(finding.printed),
        "formula": _json_number(finding.formula),
        "certified": _json_number(finding.certified),
        "claim": None if finding.claim is None else finding.claim.value,
        "note": finding.note,
    }


def _json_number(value: float | str | None) -> float | str | None:
    """JSON has no infinity and no nan: words and nothing instead."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "∞" if value > 0 else "−∞"


def _dumps(value: Any) -> str:
    """JSON, NumPy's numbers as numbers."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {str(key): plain(item) for key, item in part.items()}
        if isinstance(part, (list, tuple)):
            return [plain(item) for item in part]
        if hasattr(part, "tolist"):
            return plain(part.tolist())
        return part

    return json.dumps(plain(value), ensure_ascii=False, indent=1)
