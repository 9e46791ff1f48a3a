"""`netdp study`: from names to a study that all have signed, and what it refuses on the way."""

import json

import pytest

from netdp.peers.identity import Identity
from netdp.peers.study import Study

MEAN = ("--task", "mean", "--column", "minutes", "--bounds", "0,120", "--epsilon", "2")


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Four parties' folders, and their cards as files."""
    folder = tmp_path_factory.mktemp("homes")
    out = []
    for name in ("ann", "bob", "cy", "dee"):
        one = Identity.create(folder / name, name)
        card = folder / f"{name}.json"
        card.write_text(json.dumps(one.card.to_dict()), "utf-8")
        out.append((folder / name, card))
    return out


@pytest.fixture
def signed(run, homes, tmp_path):
    """A complete study that everybody has signed."""
    path = tmp_path / "study.toml"
    words = [word for u, (home, card) in enumerate(homes)
             for word in ("--card", str(card), "--address", f"{home.name}=127.0.0.1:{7000 + u}")]  # fmt: skip
    status, _, err = run("study", "new", "waits", *MEAN, *words, "-o", str(path))
    assert status == 0, err
    for home, _ in homes:
        status, out, err = run("study", "sign", str(path), "--home", str(home))
        assert status == 0, err
        assert "What others can learn" in out  # a person sees what it signs
        assert f"Signed by {home.name}" in out
    return path


def test_from_names_to_a_draft(run, tmp_path):
    path = tmp_path / "s.toml"
    words = ("--n", "10", "--graph", "regular:10,4", "--colluders", "2", "--attempts", "2", "--absent", "1")
    status, out, _ = run("study", "new", "waits", *MEAN, *words, "-o", str(path))
    assert status == 0
    assert "A draft" in out
    assert max(map(len, out.split("Written to")[0].splitlines())) <= 80
    study = Study.read(path)
    assert study.names[:2] == ("p00", "p01")
    assert study.nonce
    assert len(study.network.edges) == 20  # drawn graphs are written out
    assert study.check_promise() <= 2.0
    status, _, err = run("study", "new", "waits", *MEAN, *words, "-o", str(path))
    assert status == 2
    assert "is there already" in err


def test_names_and_addresses_from_a_file_then_cards(run, homes, tmp_path):
    names, path = tmp_path / "names.txt", tmp_path / "s.toml"
    names.write_text("ann 10.0.0.1:7000  # the first\nbob 10.0.0.2:7000\n\ncy\ndee\n", "utf-8")
    status, out, _ = run("study", "new", "w", *MEAN, "--parties", str(names), "-o", str(path), "--json")
    said = json.loads(out)
    assert status == 0
    assert not said["complete"]
    assert said["lacking"] == ["the addresses of cy, dee", "the cards of ann, bob, cy, dee"]
    cards = [word for _, card in homes for word in ("--card", str(card))]
    more = ("--address", "cy=10.0.0.3:7000", "--address", "dee=10.0.0.4:7000")
    status, out, _ = run("study", "complete", str(path), *cards, *more)
    assert status == 0
    assert "Next, each party" in out
    assert Study.read(path).is_complete


def test_all_signed_is_status_zero(run, signed):
    status, out, _ = run("study", "verify", str(signed))
    assert status == 0
    assert "signed by 4 of 4" in out
    status, out, _ = run("study", "verify", str(signed), "--json")
    assert json.loads(out)["all"] is True


def test_a_change_after_signing_is_named_as_such(run, signed):
    text = signed.read_text("utf-8")
    signed.write_text(text.replace("bounds = [0.0, 120.0]", "bounds = [0.0, 130.0]"), "utf-8")
    status, out, _ = run("study", "verify", str(signed))
    assert status == 1
    assert "signed by 0 of 4" in out
    assert "the study changed after signing" in out


def test_who_has_not_signed_is_named(run, signed):
    (signed.parent / "study.signatures" / "bob.sig").unlink()
    status, out, _ = run("study", "verify", str(signed), "--json")
    assert status == 1
    assert json.loads(out)["problems"] == {"bob": "has not signed"}


def test_a_stranger_does_not_sign(run, signed, tmp_path):
    Identity.create(tmp_path / "eve", "eve")
    status, _, err = run("study", "sign", str(signed), "--home", str(tmp_path / "eve"))
    assert status == 2
    assert "eve is no party" in err
    assert not (signed.parent / "study.signatures" / "eve.sig").exists()


def test_explain_in_words_and_as_json(run, signed):
    status, out, _ = run("study", "explain", str(signed))
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    study = Study.read(signed)
    assert study.card(0).fingerprint[:39] in out
    assert "127.0.0.1:7003" in out
    status, out, _ = run("study", "explain", str(signed), "--json")
    said = json.loads(out)
    assert said["kept"] is True
    assert said["epsilon"]["1"] == pytest.approx(study.promise(1).worst_epsilon(1e-6))
    assert "3" not in said["epsilon"], "three of four could open what they like"
    assert any("3 together" in note and "certified against at most 1" in note for note in said["notes"])


def test_a_table_and_a_histogram_are_asked_for(run, tmp_path):
    path = tmp_path / "t.toml"
    words = ("--column", "sex", "--column", "smoker", "--categories", "f,m", "--categories", "yes,no")
    status, _, err = run("study", "new", "t", "--task", "table", *words, "--n", "5", "-o", str(path))
    assert status == 0, err
    assert Study.read(path).task.labels == (("f", "m"), ("yes", "no"))
    status, _, err = run(
        "study", "new", "h", "--task", "histogram", "--column", "age", "--edges", "0,20,60,120", "--n", "5",
        "--unit", "record", "--max-records", "50", "-o", str(path), "--force",
    )  # fmt: skip
    assert status == 0, err
    assert Study.read(path).task.dimension == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["new", "x", *MEAN], "who takes part?"),
        (["new", "x", *MEAN, "--n", "5", "--graph", "ring:6"], "has 6 nodes, and there are 5 parties"),
        (["new", "x", *MEAN, "--n", "5", "--protocol", "shout"], "unknown protocol 'shout'"),
        (["new", "x", *MEAN, "--n", "5", "-p", "gossip", "--spread", "flood"], "belongs to masked-sum, not to gossip"),
        (["new", "x", *MEAN, "--n", "5", "--spread", "shout"], "unknown spread 'shout'"),
        (["new", "x", *MEAN, "--n", "5", "--parties", "names.txt"], "not both"),
        (["new", "x", "--column", "a", "--bounds", "0;1", "--n", "5"], "--bounds must be numbers"),
        (["new", "x", "--column", "a", "--column", "b", "--bounds", "0,1", "--n", "5"], "belong to --task table"),
        (["new", "x", *MEAN, "--n", "5", "--address", "p00"], "NAME=HOST:PORT"),
        (["new", "x", *MEAN, "--n", "5", "--delta", "0.5"], "privacy.delta"),
        (["new", "x", *MEAN, "--parties", "absent.txt"], "absent.txt: cannot be read"),
        (["new", "x", *MEAN, "--card", "absent.json"], "absent.json: cannot be read"),
        (["explain", "absent.toml"], "absent.toml: cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("study", *words)
    assert status == 2
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_draft_is_neither_signed_nor_verified(run, homes, tmp_path):
    path = tmp_path / "s.toml"
    run("study", "new", "w", *MEAN, "--n", "4", "-o", str(path))
    for words in (("verify", str(path)), ("sign", str(path), "--home", str(homes[0][0]))):
        status, _, err = run("study", *words)
        assert status == 2
        assert "draft" in err


@pytest.mark.parametrize(("protocol", "links"), [("masked-sum", 30), ("ring-sum", 10), ("walk-sum", 45)])
def test_a_graph_that_fits_the_protocol_is_the_default(run, tmp_path, protocol, links):
    path = tmp_path / "study.toml"
    status, _, err = run("study", "new", "waits", *MEAN, "-p", protocol, "--n", "10", "-o", str(path))
    assert status == 0, err
    assert Study.read(path).graph.m == links


def test_noise_as_large_as_a_guess_is_said_and_so_is_what_would_be_better(run, tmp_path):
    words = ("study", "new", "waits", *MEAN, "--n", "10", "-o", str(tmp_path / "study.toml"), "--force")
    out = run(*words, "-p", "gossip")[1]
    assert "WORSE THAN A GUESS" in out
    assert "masked-sum would have an error" in out
    masked = json.loads(run(*words, "-p", "gossip", "--json")[1])
    assert masked["relative_noise"] > 2 * masked["masked_sum_noise"]
    calm = run(*words, "--epsilon", "8")[1]
    assert "WORSE THAN A GUESS" not in calm
    assert "masked-sum would have" not in calm


def test_the_card_of_the_curator_is_no_party(run, homes, tmp_path):
    path = tmp_path / "study.toml"
    words = [word for _, card in homes for word in ("--card", str(card))]
    status, _, err = run("study", "new", "waits", *MEAN, "-p", "shuffle", "--curator", "dee", *words, "-o", str(path))
    assert status == 0, err
    study = Study.read(path)
    assert study.names == ("ann", "bob", "cy")
    assert study.curator.name == "dee"
    assert study.curator.signing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "-3"), "--n must be 2 to 10,000 parties, got -3"),
        (("--n", "100000000"), "got 100000000"),
        (("--n", "3", "--address", "p00=a:1", "--address", "p00=a:2"), "gives p00 twice, a:1 and a:2"),
    ],
)
def test_slips_of_the_finger_are_refused_with_their_value(run, tmp_path, words, said):
    status, _, err = run("study", "new", "waits", *MEAN, *words, "-o", str(tmp_path / "study.toml"))
    assert status == 2
    assert said in err
