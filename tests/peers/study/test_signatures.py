"""Every party signs exactly this study, or it is said who did not and why."""

import pytest

from netdp.errors import FileFormatError, Refused
from netdp.peers.identity import Identity
from netdp.peers.study import Study, signatures
from netdp.peers.study.task import Task


@pytest.fixture(scope="module")
def study(parties):
    draft = Study.plan(
        "s", Task(kind="mean", column="x", bounds=(0, 1)), [one.card.name for one in parties[:4]],
        graph="ring:4", epsilon=2.0, delta=1e-6,
    )  # fmt: skip
    return draft.complete([one.card for one in parties[:4]], [f"127.0.0.1:{7000 + u}" for u in range(4)])


@pytest.fixture
def path(study, parties, tmp_path):
    """The study with everybody's signature beside it."""
    study.write(tmp_path / "study.toml")
    for one in parties[:4]:
        signatures.write(tmp_path / "study.toml", one.card.name, signatures.sign(study, one))
    return tmp_path / "study.toml"


def test_all_have_signed(study, path):
    found = signatures.read_all(path)
    assert sorted(found) == ["p0", "p1", "p2", "p3"]
    assert (path.parent / "study.signatures" / "p2.sig").is_file()
    signatures.verify_all(Study.read(path), found)
    assert signatures.problems(study, found) == {}


def test_comments_do_not_break_signatures_but_every_number_does(study, path):
    text = path.read_text("utf-8")
    path.write_text(text.replace("[task]", "# a remark\n\n[task]"), "utf-8")
    signatures.verify_all(Study.read(path), signatures.read_all(path))
    path.write_text(text.replace("patience = 60.0", "patience = 61.0"), "utf-8")
    with pytest.raises(Refused, match=r"p0: signed another version .*the study changed after signing"):
        signatures.verify_all(Study.read(path), signatures.read_all(path))


def test_it_is_said_who_is_missing(study, path):
    (path.parent / "study.signatures" / "p1.sig").unlink()
    assert signatures.problems(study, signatures.read_all(path)) == {"p1": "has not signed"}
    with pytest.raises(Refused, match="p1: has not signed"):
        signatures.verify_all(study, signatures.read_all(path))


def test_nobody_signs_for_another(study, path, parties):
    forged = signatures.Signature(parties[1].sign(signatures.message(study.hash)), study.hash)
    signatures.write(path, "p0", forged)
    assert list(signatures.problems(study, signatures.read_all(path))) == ["p0"]
    with pytest.raises(Refused, match="p0: the signature is not its own"):
        signatures.verify_all(study, signatures.read_all(path))


def test_what_the_file_says_was_signed_is_a_remark_only(study, path, parties):
    other = study.replace(timing={"patience": 61.0})
    old = signatures.sign(other, parties[0])
    lying = signatures.Signature(bytes(old), study.hash)  # says it signed this study, signed another
    assert signatures.problems(study, signatures.read_all(path) | {"p0": lying})["p0"].startswith(
        "the signature is not"
    )
    good = signatures.sign(study, parties[0])
    assert signatures.problems(study, signatures.read_all(path) | {"p0": bytes(good)}) == {}


def test_a_signature_of_a_study_is_no_signature_of_anything_else(study, parties):
    bare = parties[0].sign(study.hash)
    assert signatures.problems(study, {"p0": bare})["p0"].startswith("the signature is not its own")


def test_strangers_are_named(study, path, parties):
    found = signatures.read_all(path) | {"p7": b"x" * 64}
    with pytest.raises(Refused, match="p7: signed, but is no party"):
        signatures.verify_all(study, found)


def test_a_party_signs_only_a_complete_study_with_its_own_card_that_keeps_its_promise(study, parties, tmp_path):
    draft = study.replace(party=[{"name": name} for name in study.names])
    with pytest.raises(Refused, match="is a draft and cannot be signed"):
        signatures.sign(draft, parties[0])
    with pytest.raises(Refused, match="is a draft"):
        signatures.verify_all(draft, {})
    with pytest.raises(Refused, match="p5 is no party"):
        signatures.sign(study, parties[5])
    other = Identity.create(tmp_path / "again", "p0")
    with pytest.raises(Refused, match="another card under the name p0"):
        signatures.sign(study, other)
    with pytest.raises(Refused, match="promises epsilon = 2"):
        signatures.sign(study.replace(protocol={"sigma": 1.0}), parties[0])


@pytest.mark.parametrize("content", [b"", b"abc\n", b"\xff\xfe", b"00" * 32 + b"\n***\n", b"zz" * 32 + b"\nAAAA\n"])
def test_damaged_files_are_named(path, content):
    (path.parent / "study.signatures" / "p0.sig").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"p0\.sig: is no signature"):
        signatures.read_all(path)


def test_no_folder_means_nobody_has_signed(tmp_path):
    assert signatures.read_all(tmp_path / "study.toml") == {}
