"""A verdict compares: every figure and table is held against its document, and a wrong curve does not pass."""

import math
import re
from pathlib import Path

import pytest

from netdp.papers import catalogue
from netdp.papers.comparison import (
    Basis,
    Between,
    Close,
    Comparison,
    Crosses,
    Falls,
    Gains,
    Level,
    Magnitude,
    Ordered,
    Power,
    RankCorrelation,
    Rises,
    Together,
    wrong,
)
from netdp.papers.errata import base
from netdp.papers.experiment import Agreement, Experiment, Observation, Result

SEEDS = (Path(__file__).parents[2] / "docs" / "papers" / "seeds.md").read_text("utf-8")

DOCUMENTS = [name for name in catalogue.names() if not name.startswith("ours-")]

BETTER = [Agreement.REPRODUCED, Agreement.WITH_ERRATUM, Agreement.IN_PART, Agreement.NOT_REPRODUCED]


@pytest.fixture(params=DOCUMENTS)
def found(request, quick):
    return quick(request.param)


def refused(comparison):
    """The curves of a comparison for which some wrong curves are refused."""
    factor = 10.0 if isinstance(comparison.rule, Magnitude) else 1.3
    return {
        name
        for touched, curves in wrong(comparison.ours, factor)
        if not comparison.rule.holds(curves)
        for name in touched.split(" and ")
    }


def test_every_experiment_is_held_against_its_document(found):
    experiment, result = found
    assert any(one.basis.document for one in result.comparisons)
    assert experiment.verdict(result) in BETTER
    assert all(one.says and one.what for one in result.comparisons)
    assert all(one.note or one.erratum or one.agrees for one in result.comparisons), (
        "what does not come out is explained"
    )


def test_the_page_of_the_documents_has_this_verdict(found):
    """docs/papers/seeds.md, on a machine with the same data."""
    experiment, result = found
    rows = [line.split(" | ")[-1] for line in SEEDS.splitlines() if f"`netdp reproduce {experiment.id}`" in line]
    said = [re.search(r": (reproduced with erratum|reproduced in part|not reproduced|reproduced)", row) for row in rows]
    verdicts = {one[1] for one, row in zip(said, rows, strict=True) if one and experiment.id in row.partition(": ")[0]}
    assert verdicts, "no row of docs/papers/seeds.md has this figure or table"
    if result.missing or verdicts != {Agreement.IN_PART.value}:  # with more data less may be missing
        assert verdicts == {experiment.verdict(result).value}


def test_a_wrong_curve_is_refused(found):
    """Each curve that a comparison looks at: too large, too small, reversed, bent or exchanged, some of it must fail."""
    experiment, result = found
    for place, one in enumerate(result.comparisons):
        assert not any(" and " in name for name in one.ours)
        if not one.agrees:
            continue
        assert refused(one) == set(one.ours), f"{one.what}: a wrong curve would pass"
        # and with it the verdict is a worse one
        factor = 10.0 if isinstance(one.rule, Magnitude) else 1.3
        bad = next(curves for _, curves in wrong(one.ours, factor) if not one.rule.holds(curves))
        spoilt = Comparison(one.what, one.says, bad, one.rule, one.basis)
        others = (*result.comparisons[:place], spoilt, *result.comparisons[place + 1 :])
        worse = experiment.verdict(Result({}, result.findings, others, missing=result.missing))
        assert worse in (Agreement.IN_PART, Agreement.NOT_REPRODUCED)


def test_swapped_or_scaled_curves_change_every_verdict(found):
    """All curves of an experiment made wrong at once, each in the way that its rule refuses: nothing is reproduced."""
    experiment, result = found
    spoilt = []
    for one in result.comparisons:
        factor = 10.0 if isinstance(one.rule, Magnitude) else 1.3
        bad = next((curves for _, curves in wrong(one.ours, factor) if not one.rule.holds(curves)), None)
        spoilt.append(Comparison(one.what, one.says, one.ours if bad is None else bad, one.rule, one.basis))
    assert experiment.verdict(Result({}, result.findings, tuple(spoilt))) is Agreement.NOT_REPRODUCED


def test_errata_that_explain_are_named_with_the_experiment(found):
    experiment, result = found
    known = base.load()
    for one in result.comparisons:
        if one.erratum:
            assert one.erratum in known
            if not one.agrees:
                assert one.erratum in experiment.errata


def test_numbers_of_the_authors_code_are_not_called_printed(found):
    """A number in the document is in its text; what only a program prints is of the basis CODE."""
    experiment, result = found
    for one in result.comparisons:
        assert one.basis is not Basis.CODE or not one.basis.document
    assert all("code" not in str(finding.printed).lower() for finding in result.findings), experiment.id


def made(*comparisons, missing=(), holds=True, paper="000"):
    experiment = Experiment(f"{paper}-x", "Figure 0", "t", "s", lambda size, work: None, "", "")
    return experiment.verdict(Result({}, (Observation("ours", holds, certified=1.0),), comparisons, missing=missing))


def compared(agrees, basis=Basis.STATED, erratum=""):
    return Comparison("x", "1", {"a": [1.0 if agrees else 2.0]}, Close(1.0, relative=0.1), basis, erratum)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (made(), Agreement.UNCOMPARED),
        (made(compared(True, Basis.CODE)), Agreement.UNCOMPARED),
        (made(compared(True)), Agreement.REPRODUCED),
        (made(compared(True), compared(True, Basis.CODE)), Agreement.REPRODUCED),
        (made(compared(True), compared(False, Basis.CODE)), Agreement.IN_PART),
        (made(compared(True), compared(False, erratum="e")), Agreement.WITH_ERRATUM),
        (made(compared(True, erratum="e")), Agreement.REPRODUCED),
        (made(compared(True), compared(False), compared(False, erratum="e")), Agreement.IN_PART),
        (made(compared(True), missing=("a file",)), Agreement.IN_PART),
        (made(compared(False)), Agreement.NOT_REPRODUCED),
        (made(compared(False, erratum="e")), Agreement.NOT_REPRODUCED),
        (made(compared(True), holds=False), Agreement.DIFFERS),
        (made(holds=False, paper="ours"), Agreement.DIFFERS),
        (made(paper="ours"), Agreement.OURS),
    ],
)
def test_verdicts_follow_from_comparisons(verdict, expected):
    assert verdict is expected


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (Close((1.0, 2.0), absolute=0.1), {"a": [1.05, 1.95]}, {"a": [1.05, 2.15]}),
        (Between(0.0, 1.0), {"a": [0.0, 1.0]}, {"a": [0.5, math.nan]}),
        (Magnitude(1e3), {"a": [400.0]}, {"a": [300.0]}),
        (Ordered(apart=0.1), {"a": [1.0, 2.0], "b": [0.9, 1.0]}, {"a": [1.0, 2.0], "b": [0.95, 1.0]}),
        (Ordered(apart=-0.1), {"a": [1.0], "b": [1.05]}, {"a": [1.0], "b": [1.2]}),
        (Falls(2.0, slack=0.1), {"a": [2.0, 2.1, 1.0]}, {"a": [2.0, 2.3, 1.0]}),
        (Rises(2.0), {"a": [1.0, 1.5, 2.0]}, {"a": [1.0, 1.5, 1.9]}),
        (Gains(0.1), {"a": [1.0, 0.5, 1.2]}, {"a": [1.0, 2.0, 1.05]}),
        (Gains(-0.1), {"a": [1.0, 0.8]}, {"a": [1.0, 0.95]}),
        (Level(0.1), {"a": [1.0, 1.05]}, {"a": [1.0, 1.3, 1.0]}),
        (Together(relative=0.1), {"a": [1.0], "b": [1.05]}, {"a": [1.0], "b": [1.2]}),
        (Crosses((1, 2, 3), 2, 3), {"a": [2, 0, 0], "b": [1, 1, 1]}, {"a": [0, 0, 0], "b": [1, 1, 1]}),
        (Crosses((1, 2, 3), 2, math.inf), {"a": [2, 2, 2], "b": [1, 1, 1]}, {"a": [0, 0, 0], "b": [1, 1, 1]}),
        (Power((1.0, 10.0), -1.0, 0.1, 0.3), {"a": [1.0, 10**-0.75]}, {"a": [1.0, 10**-1.15]}),
        (RankCorrelation(-1.0, -0.9), {"a": [1, 2, 3], "b": [3, 2, 1]}, {"a": [1, 2, 3], "b": [3, 1, 2]}),
    ],
)
def test_rules(rule, good, bad):
    assert rule.holds(good)
    assert not rule.holds(bad)
    comparison = Comparison("x", "y", good, rule)
    assert comparison.agrees
    assert comparison.shown
    assert rule.tolerance
    assert comparison.outcome == "agrees"
    assert comparison.with_curves(bad).outcome == "does not come out"
    assert set(comparison.to_dict()) == {"what", "basis", "document", "ours", "tolerance", "agrees", "erratum", "note"}
