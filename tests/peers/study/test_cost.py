"""Estimators, `netdp study new` and `netdp study explain` say the same of the same training, with the words of one helper."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from netdp.cli import app
from netdp.families.masked.training import outlook
from netdp.learn import LogisticRegression, NoiseWarning
from netdp.peers.study import Study
from netdp.peers.study.progress import outlook_of, warnings_of

PARTIES, ROWS = 12, 5


def estimated(epsilon, unit):
    """What an estimator makes of so many parties and rows: its plan, and what it warned of."""
    X = np.linspace(-1.0, 1.0, 2 * PARTIES * ROWS).reshape(-1, 2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = LogisticRegression(
            PARTIES, epsilon=epsilon, unit=unit, graph=f"complete:{PARTIES}", iterations=4, random_state=0
        ).fit(X, np.arange(len(X)) % 2)
    return model.plan_, [str(one.message) for one in said if one.category is NoiseWarning]


@pytest.mark.parametrize("unit", ["party", "record"])
@pytest.mark.parametrize("epsilon", [0.3, 3.0, 9.0])
def test_all_three_agree(tmp_path, monkeypatch, epsilon, unit):
    monkeypatch.chdir(tmp_path)
    plan, warned = estimated(epsilon, unit)
    words = [
        "study",
        "new",
        "three",
        "--n",
        str(PARTIES),
        "--feature",
        "a=-1..1",
        "--feature",
        "b=-1..1",
        "--label",
        "y=0|1",
    ]
    words += [
        "--unit",
        unit,
        "--max-records",
        str(ROWS),
        "--epsilon",
        str(epsilon),
        "--delta",
        "1e-6",
        "--iterations",
        "4",
    ]
    words += ["--graph", f"complete:{PARTIES}"]
    new = CliRunner().invoke(app, words)
    assert new.exit_code == 0, new.output
    explained = CliRunner().invoke(app, ["study", "explain", "study.toml"]).output
    study = Study.read(tmp_path / "study.toml")
    found = outlook_of(study)
    assert found.edge == pytest.approx(plan.edge, rel=0.02)
    assert found.expected == pytest.approx(plan.expected, rel=0.02)
    loud = " ".join(warnings_of(study))
    assert bool(loud) == bool(warned) == bool(plan.warnings) == (epsilon < (9.0 if unit == "party" else 3.0))
    assert tuple(warned) == plan.warnings == outlook(plan.protocol, ROWS).warnings
    for text in (new.output, explained):
        assert ("NOISE WILL WIN" in text) == bool(warned)
        assert " ".join(loud.split()) in " ".join(text.split())
