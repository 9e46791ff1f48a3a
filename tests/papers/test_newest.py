"""The page beside the newest papers: its numbers against the experiments, their parts against independent computations."""

import re
from pathlib import Path

import numpy as np
import pytest

from netdp.papers.formulas import matrix_factorization as mf
from netdp.papers.ours import newest
from netdp.privacy import gaussian_delta, gaussian_mu

PAGE = (Path(__file__).parents[2] / "docs" / "papers" / "newest.md").read_text("utf-8")


def shown(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def alike(written, value):
    """Words and whole numbers as they are, others within one unit in the last digit written."""
    if not isinstance(value, float):
        return written == str(value)
    mantissa, _, exponent = written.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(written) - value) <= max(1.001 * unit, 0.01 * abs(value))


@pytest.mark.parametrize("name", ["ours-newest", "ours-correlated"])
def test_the_tables_of_the_page_are_those_of_the_experiments(name, quick):
    _, result = quick(name)
    for table in result.tables:
        if table.title.startswith("Worst pair"):  # a search: the page says in words what the finding holds
            continue
        header = "| " + " | ".join(table.columns) + " |"
        expected = "\n".join("| " + " | ".join(map(shown, row)) + " |" for row in table.rows)
        assert header in PAGE, f"{header}\n{expected}"
        body = PAGE.split(header)[1].splitlines()[2:]
        for line, row in zip(body, table.rows, strict=False):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == len(row), line
            assert all(map(alike, cells, row)), f"{line}\nexpected\n{expected}"
        assert not body[len(table.rows)].startswith("|")


def test_the_page_says_what_the_findings_hold(quick):
    for name in ("ours-newest", "ours-correlated"):
        _, result = quick(name)
        assert [found.what for found in result.findings if not found.holds] == []
    (pairs,) = (table for table in result.tables if table.title.startswith("Worst pair"))
    _, linear, reacting, least = pairs.rows[1]
    assert linear < 0.7
    assert reacting > 10
    assert round(least, 2) == 0.98
    (gain,) = (found.certified for found in result.findings if found.what.startswith("accuracy that the best noise"))
    (at_best,) = re.findall(r"at best (−?[\d.]+) ±", PAGE)
    assert abs(float(at_best.replace("−", "-")) - gain) < 0.002
    (sampling,) = (table for table in result.tables if table.title.startswith("Beside secret"))
    _, _, everywhere, last, secret, full = np.array(sampling.rows).T
    assert (full < last).all()
    assert (last < secret).all()
    assert (everywhere < secret).tolist() == [False, True, True]
    assert re.search(r"below 0\.7 .* more than ten times .* 0\.98", " ".join(PAGE.split()))


def test_a_jump_is_seen_in_simulation_too():
    """The protocol run a million times: an event that is likelier than the printed (ε, δ) allows."""
    rng, runs = np.random.default_rng(7), 1_000_000
    noise = rng.normal(size=(4, runs))

    def image(shift):  # path 0-1-2; party 0 knows q, and its own noise is subtracted
        q = noise[0] / 3
        theta = q + (noise[1] + shift) / 3
        return theta + 0.5 * np.sign(theta) + noise[2]

    threshold = 2.0
    P, Q = np.mean(image(1.0) > threshold), np.mean(image(0.0) > threshold)
    claimed = float(gaussian_delta(np.sqrt(0.1), 0.5))
    assert P - np.exp(0.5) * Q > claimed * 1.5
    assert newest.jumping(1.0, 0.5, 0.5) > P - np.exp(0.5) * Q


def test_quadrature_is_right_where_the_answer_is_known():
    for shift, epsilon in ((0.5, 0.3), (2.0, 1.0)):
        assert newest.jumping(shift, epsilon, 0.0) == pytest.approx(
            float(gaussian_delta(shift * np.sqrt(0.1), epsilon)), rel=1e-3
        )
        known = float(gaussian_delta(shift * np.sqrt(2), epsilon))
        assert newest.two_parties(shift, epsilon) == pytest.approx(known, rel=1e-3)


def test_no_noise_is_below_the_least():
    """Against random correlations; and it is attained by a schedule where models add gradients up."""
    rng = np.random.default_rng(3)
    A = np.tri(5)
    for M in (A.T @ A, mf.workload(np.full((3, 3), 1 / 3), 5), newest.last_models(np.full((2, 2), 0.5), 5)):
        least = newest.least_noise(M)
        assert least <= np.sqrt(M.diagonal()).sum() ** 2 * (1 + 1e-9)
        for _ in range(200):
            C = np.tril(rng.normal(size=(5, 5)) * 0.5) + np.diag(1 + rng.random(5))
            signs = np.array(np.meshgrid(*[[1, -1]] * 5)).reshape(5, -1)
            sens = ((C @ signs) ** 2).sum(axis=0).max()
            inverse = np.linalg.inv(C)
            assert (M * (inverse @ inverse.T)).sum() * sens >= least * (1 - 1e-9)
    assert newest.least_noise(A.T @ A) == pytest.approx(np.sqrt((A.T @ A).diagonal()).sum() ** 2)


def test_the_last_model_cannot_have_less_noise():
    """k contributions of at most Δ: deviation at least k/μ, for optimised matrices of every b."""
    for b, independent, everywhere, last, least in newest.batch_rows():
        k = newest.STEPS // b
        assert least == k
        assert independent == pytest.approx(np.sqrt(k * newest.STEPS))
        assert min(everywhere, last) >= k * (1 - 1e-9)
        assert last < 1.15 * k


def test_training_adds_the_noise_that_it_says(monkeypatch):
    """Alike: T·Δ²/μ² per coordinate and gradient. A step of 0 moves nothing, whatever is drawn."""
    assert newest.trained(["alike", 3.0, 0.0, 0]) == newest.trained(["optimised", 3.0, 0.0, 0])
    X = newest.noises()["alike"]
    mu = float(gaussian_mu(3.0, newest.DELTA))
    assert (2 / mu) ** 2 / X[0, 0] == pytest.approx(newest.ITERATIONS * 4 / mu**2)
    assert newest.noises()["optimised"].trace() == pytest.approx(1)
    off = newest.noises()["optimised"] - np.diag(newest.noises()["optimised"].diagonal())
    assert np.abs(off).max() == 0
