"""`netdp audit`: attack what is claimed, in simulation or on what real peers sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netdp.errors import InvalidValue

from . import flags

if TYPE_CHECKING:
    from netdp.audit.findings import Audit

Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="STUDY|GRAPH",
        help="A study (study.toml), or a graph (ring:16, karate, a file of edges …) with the flags of a protocol.",
        show_default=False,
    ),
]
AUDIT_FLAGS: dict[str, Any] = {
    "observer": flags.Observer,
    "target": flags.option(str, "With --observer: look at this pair only."),
    "colluders": flags.option(int, "How many parties pool what they see in the last row; 3 by default."),
    "delta": flags.Delta,
    "trials": flags.option(int, "Runs with each of two values; by default as many as the claim needs."),
    "confidence": flags.option(float, "That no row of a sound system is called refuted; 0.9999 by default."),
    "seed": flags.option(int, "The same seed gives the same audit; 0 by default."),
    "peers": flags.option(
        list[Path],
        "Instead: a recording of real peers, DIR of netdp up STUDY --folder DIR --record DIR; repeat it for several "
        "studies of the same parties.",
    ),
    "run": flags.option(
        Path, "Run the parties of STUDY here as real processes on test data, record them in this folder, audit that."
    ),
    "canaries": flags.option(int, "With --run: how many records are in or out by a coin; 2,000 by default."),
}
_OF_A_STUDY = ("graph", "colluders", "delta", "trials", "confidence", "seed", "plot", "json", *flags.ENGINE_FLAGS)
_OF_PEERS = ("peers", "observer", "target", "delta", "confidence", "plot", "json")
_OF_A_RUN = ("graph", "run", "canaries", "seed", "observer", "target", "delta", "confidence", "plot", "json")


@flags.takes(
    {
        "graph": Subject,
        "protocol": flags.Protocol,
        **flags.PROTOCOL_FLAGS,
        **AUDIT_FLAGS,
        **flags.ENGINE_FLAGS,
        "config": flags.Config,
        "plot": flags.option(Path, "The report as out.html, or its picture as out.png, out.svg or out.pdf."),
        "json": flags.Json,
    }
)
def audit(context: typer.Context, **typed: Any) -> int:
    """Attack what is claimed: does anybody learn more than the certified ε?

    The strongest attacks there are get all that the observers hold after a run, and guess which of two values the target had, in
    many runs: for the worst pair, a random pair, the farthest pair and a coalition. How often they are right proves a lower
    bound on ε, which must not exceed the claim. With --peers the numbers are those that real peers sent.

    Exit status: 0 nothing was refuted, 1 something was.
    """
    from netdp.cli.output import show
    from netdp.report.audit import audit_table, save_audit
    from netdp.report.style import picture_path

    plot = typed.get("plot")
    if plot is not None:
        picture_path(plot)  # refuse before the work
    found = _audited(context, typed)
    drawn = None if plot is None else save_audit(found, plot)
    lines = [audit_table(found), *([f"report: {drawn}"] if drawn is not None else [])]
    show({**found.to_dict(), "plot": None if drawn is None else str(drawn)}, lines, bool(typed.get("json")))
    return 0 if found.ok else 1


def _audited(context: typer.Context, typed: dict[str, Any]) -> Audit:
    given = flags.given(typed)
    subject = str(typed.get("graph") or "")
    if typed.get("peers"):
        _only(given, _OF_PEERS, "an audit of a recording")
        return _of_peers([Path(folder) for folder in typed["peers"]], typed)
    if typed.get("run") is not None:
        _only(given, _OF_A_RUN, "an audit run of a study")
        return _of_a_run(subject, typed)
    if typed.get("canaries") is not None:
        raise InvalidValue("--canaries is about --run DIR, a run of real peers; give that, or leave it out")
    if subject.endswith(".toml"):
        _only(given, _OF_A_STUDY, "an audit of a study")
        return _of_a_study(context, Path(subject), given)
    return _of_a_protocol(context, typed, given)


def _only(given: dict[str, Any], known: tuple[str, ...], what: str) -> None:
    """Refuse flags that would do nothing."""
    for key in given:
        if key not in known:
            listed = ", ".join(f"--{name}" for name in known if name not in ("graph", "json"))
            raise InvalidValue(f"--{key} does not belong to {what}; it takes: {listed}")


def _of_a_protocol(context: typer.Context, typed: dict[str, Any], given: dict[str, Any]) -> Audit:
    from netdp import audit as attacking
    from netdp.cli.output import progress_bar
    from netdp.settings.loading import audit_settings
    from netdp.settings.models import found

    settings = audit_settings(typed["config"], given)
    context.with_resource(settings.running())
    protocol = settings.made()
    options: dict[str, Any] = {
        "delta": settings.delta, "trials": settings.trials, "confidence": settings.confidence, "seed": settings.seed,
    }  # fmt: skip
    with progress_bar("attacking") as progress:
        if settings.target is None:
            whole: Audit = attacking.audit(protocol, colluders=settings.colluders, progress=progress, **options)
            return whole
        (target,) = found(protocol, [settings.target])
        network = protocol.network
        number = int(target) if network is None else network.index(target)
        look = attacking.look(protocol, settings.observers(protocol), number)
        one: Audit = attacking.audit_these(protocol, [look], **options)
        return one


def _of_a_study(context: typer.Context, path: Path, given: dict[str, Any]) -> Audit:
    from netdp.cli.output import progress_bar
    from netdp.engines.choice import engine
    from netdp.peers.recordings.audit import audit_in_simulation
    from netdp.peers.study.study import Study

    study = Study.read(path)
    context.with_resource(engine(given.get("engine"), workers=given.get("workers"), scheduler=given.get("scheduler")))
    options = {key: given[key] for key in ("delta", "colluders", "trials", "confidence", "seed") if key in given}
    with progress_bar("attacking") as progress:
        return audit_in_simulation(study, progress=progress, **options)


def _of_peers(folders: list[Path], typed: dict[str, Any]) -> Audit:
    from netdp.peers.recordings.audit import audit_recording

    return audit_recording(folders, **_looking(typed))


def _of_a_run(subject: str, typed: dict[str, Any]) -> Audit:
    from netdp.cli.output import working
    from netdp.peers.recordings.audit import audit_recording
    from netdp.peers.recordings.canaries import run_with_canaries
    from netdp.peers.study.digest import identity_of
    from netdp.peers.study.study import Study

    if not subject.endswith(".toml"):
        raise InvalidValue(f"--run runs the parties of a study; give its file, study.toml, got {subject!r}")
    options = {"count": typed["canaries"]} if typed.get("canaries") is not None else {}
    with working("running the parties"):
        folder = run_with_canaries(Path(subject), typed["run"], seed=typed.get("seed"), **options)
    found = audit_recording([folder], **_looking(typed))
    return replace(found, facts=found.facts | {"study": identity_of(Study.read(Path(subject)))})


def _looking(typed: dict[str, Any]) -> dict[str, Any]:
    names = {"observer": "observers", "target": "target", "delta": "delta", "confidence": "confidence"}
    return {name: typed[flag] for flag, name in names.items() if typed.get(flag) is not None}
