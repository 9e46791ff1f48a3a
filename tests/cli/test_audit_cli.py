"""`netdp audit` as a person and as a program would use it."""

import json
from pathlib import Path

import pytest

import netdp
from netdp.audit import attacks
from netdp.audit.attack import SIMULATOR
from netdp.cli.audit import AUDIT_FLAGS

RING = ["audit", "ring:8", "-T", "4", "--sigma", "1"]
FEW = ["--trials", "3000", "--colluders", "1"]


def test_it_says_what_was_claimed_and_what_was_measured(run):
    status, out, err = run(*RING, "--trials", "4000")
    assert (status, err) == (0, "")
    for word in (
        "worst pair",
        "random pair",
        "farthest pair",
        "3 colluders",
        "claimed",
        "at least",
        "nothing was refuted",
    ):
        assert word in out
    assert "by distance from one observer" in out
    assert "99.99 % confidence" in out


def test_numbers_are_those_of_the_library(run):
    data = json.loads(run(*RING, "--trials", "3000", "--seed", "5", "--json")[1])
    protocol = netdp.Gossip(netdp.graphs.ring(8), rounds=4, sigma=1.0)
    expected = netdp.audit.audit(protocol, trials=3000, seed=5)
    assert data["ok"] is True
    assert [row["measured"]["epsilon"] for row in data["findings"]] == [
        row.measured.epsilon for row in expected.findings
    ]
    assert data["findings"][0]["claimed"] == pytest.approx(netdp.pairwise(protocol).worst_epsilon(1e-6))


def test_one_pair_by_name(run):
    data = json.loads(run("audit", "karate", "-T", "5", "--sigma", "1", "-o", "0", "-o", "33", "--target", "5",
                          "--trials", "3000", "--json")[1])  # fmt: skip
    (row,) = data["findings"]
    assert row["observers"]["parties"] == [0, 33]
    assert row["target"] == 5


def test_a_study_is_attacked_as_it_stands(run):
    study = Path(__file__).parents[2] / "examples" / "clinics" / "study.toml"
    data = json.loads(run("audit", str(study), "--trials", "1024", "--json")[1])
    assert data["ok"] is True
    assert "Waiting times" in data["title"]
    assert {row["name"] for row in data["findings"]} == {"worst pair", "random pair", "farthest pair", "3 colluders"}
    assert all(row["claimed"] <= 1.0 + 1e-9 for row in data["findings"])


def test_the_report_is_one_file(run, tmp_path):
    page, picture = tmp_path / "audit.html", tmp_path / "audit.png"
    status, out, _ = run(*RING, *FEW, "--plot", str(page))
    assert status == 0
    assert str(page) in out
    text = page.read_text("utf-8")
    assert "<svg" in text
    assert "Nothing was refuted." in text
    assert "http" not in text.replace("http-equiv", "")
    assert run(*RING, *FEW, "--plot", str(picture))[0] == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_what_is_refuted_is_told_by_the_exit_status(run, monkeypatch):
    """A simulator with half of the noise, under the claim of all of it."""
    from netdp.audit import audits as front

    sound = SIMULATOR

    def halved(protocol, values, seed, normal, record):
        return sound(protocol.replace(sigma=protocol.sigma / 2), values, seed, normal, record)

    monkeypatch.setitem(front.audit.__kwdefaults__, "system", halved)
    status, out, _ = run(*RING, "--trials", "20000")
    assert status == 1
    assert "refuted: worst pair" in out
    assert "do not rely on it" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*RING, "--observer", "0"], "needs a target"),
        ([*RING, "--target", "3"], "--observer"),
        ([*RING, "--observer", "0", "--target", "0"], "looks itself"),
        ([*RING, "--steps", "3"], "--steps does not belong to gossip"),
        ([*RING, "--trials", "0"], "trials"),
        ([*RING, "--confidence", "1.5"], "between 0 and 1"),
        ([*RING, "--canaries", "3"], "--run"),
        (["audit", "examples/none.toml"], "none.toml"),
        (["audit", "ring:8", "--run", "somewhere"], "study.toml"),
        (["audit", "--peers", "no-such-folder"], "no-such-folder"),
        ([*RING, "--peers", "x"], "does not belong to an audit of a recording"),
        ([*RING, "--plot", "x.doc"], ".html"),
    ],
)
def test_nonsense_is_refused(run, words, said):
    status, out, err = run(*words)
    assert status == 2
    assert out == ""
    assert said in err


def test_every_flag_of_the_audit_belongs_to_something():
    """What is offered is used: by a protocol's settings, or by peers and runs."""
    from netdp.settings.models import Auditing

    known = {name.replace("-", "_") for name in Auditing.flags()}
    assert set(AUDIT_FLAGS) - known == {"peers", "run", "canaries"}


def test_every_protocol_has_an_attack_or_a_reason(run):
    """No protocol of the catalogue is forgotten."""
    from netdp.protocols import Protocol
    from netdp.protocols.family import load

    for kind in Protocol.kinds().values():
        if kind.__module__.startswith("netdp."):
            load(kind, "attack")
            entered = [base for base in kind.__mro__ if base in attacks._entries]
            assert any(base is kind or attacks._entries[base].subclasses for base in entered) or any(
                base in attacks._reasons for base in kind.__mro__
            ), kind
