"""A party's keys: made once, kept private, refused when damaged; cards that vouch for one party only."""

import base64
import dataclasses
import datetime
import json
import os
import pickle
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.peers.identity import TLS_NAME, Card, Identity, certificate, check_name, pem

FILES = ("signing.key", "agreement.key", "noise.key", "tls.key", "card.json")


@pytest.fixture(scope="module")
def alice(tmp_path_factory):
    return Identity.create(tmp_path_factory.mktemp("alice"), "alice")


@pytest.fixture(scope="module")
def bob(tmp_path_factory):
    return Identity.create(tmp_path_factory.mktemp("bob"), "bob")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_private_from_the_start(tmp_path):
    before = os.umask(0)
    try:
        Identity.create(tmp_path / "new" / "home", "alice")
    finally:
        os.umask(before)
    keys = tmp_path / "new" / "home" / "keys"
    assert mode(keys) == 0o700
    assert mode(keys.parent) == 0o700
    assert {path.name: mode(path) for path in keys.iterdir()} == dict.fromkeys(FILES, 0o600)


def test_what_is_loaded_is_what_was_made(tmp_path):
    made = Identity.create(tmp_path, "alice")
    loaded = Identity.load(tmp_path)
    assert loaded.card == made.card
    assert loaded.noise_secret == made.noise_secret
    assert loaded.tls_key_pem == made.tls_key_pem
    assert loaded.sign(b"hello") == made.sign(b"hello")
    assert loaded.home == tmp_path


def test_an_identity_is_not_overwritten(tmp_path):
    first = Identity.create(tmp_path, "alice")
    with pytest.raises(Refused, match="has an identity already"):
        Identity.create(tmp_path, "alice")
    assert Identity.load(tmp_path).card == first.card
    second = Identity.create(tmp_path, "alice", force=True)
    assert Identity.load(tmp_path).card == second.card != first.card
    aside = tmp_path / "keys.old-1"
    assert Card.from_dict(json.loads((aside / "card.json").read_text())) == first.card
    assert mode(aside) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys", "keys.old-1"]


def test_signatures(alice, bob):
    signature = alice.sign(b"message")
    assert alice.card.verify(b"message", signature)
    assert not alice.card.verify(b"massage", signature)
    assert not bob.card.verify(b"message", signature)
    assert not alice.card.verify(b"message", signature[:-1])
    assert not alice.card.verify(b"message", b"")
    assert not dataclasses.replace(alice.card, signing=b"short").verify(b"message", signature)


def test_two_parties_share_a_secret(alice, bob):
    assert alice.shared(bob.card) == bob.shared(alice.card)
    assert len(alice.shared(bob.card)) == 32
    with pytest.raises(Refused, match="agreement key of bob shares no secret"):
        alice.shared(dataclasses.replace(bob.card, agreement=bytes(32)))


def test_no_secret_is_shown_or_copied(alice):
    assert repr(alice) == f"Identity('alice', {alice.card.fingerprint})"
    with pytest.raises(Refused, match="not copied"):
        pickle.dumps(alice)


def test_fingerprints_cover_all_of_a_card(alice, bob):
    groups = alice.card.fingerprint.split(" ")
    assert len(groups) == 16
    assert all(len(group) == 4 for group in groups)
    changed = [
        dataclasses.replace(alice.card, **{key: getattr(bob.card, key)})
        for key in ("name", "signing", "agreement", "certificate")
    ]
    assert len({card.fingerprint for card in (alice.card, bob.card, *changed)}) == 6
    fixed = Card("ab", b"c", b"", b"d")
    assert fixed.fingerprint != Card("a", b"bc", b"", b"d").fingerprint
    assert fixed.fingerprint.startswith("db62 4b84 c3b4 de95")


def test_cards_as_text(alice):
    text = json.dumps(alice.card.to_dict())
    assert Card.from_dict(json.loads(text)) == alice.card
    for key in ("name", "signing", "agreement", "certificate"):
        short = {name: value for name, value in alice.card.to_dict().items() if name != key}
        with pytest.raises(InvalidValue, match="exactly the entries name, signing, agreement, certificate"):
            Card.from_dict(short)
    with pytest.raises(InvalidValue, match="exactly the entries"):
        Card.from_dict({**alice.card.to_dict(), "colour": "red"})
    with pytest.raises(InvalidValue, match="signing must be base64 text, got '§'"):
        Card.from_dict({**alice.card.to_dict(), "signing": "§"})
    with pytest.raises(InvalidValue, match="signing key of alice must be 32 bytes, got 3 bytes"):
        Card.from_dict({**alice.card.to_dict(), "signing": base64.b64encode(b"abc").decode()})


@given(st.text(max_size=70))
def test_names(text):
    good = 1 <= len(text) <= 64 and all(c.isascii() and (c.isalnum() or c in "._-") for c in text) and text[0] != "."
    if good:
        assert check_name(text) == text
    else:
        with pytest.raises(InvalidValue, match="1 to 64 letters"):
            check_name(text)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a" * 65, "a b", "ü", "a\n", None, 3])
def test_names_that_are_refused(tmp_path, name):
    with pytest.raises(InvalidValue, match="1 to 64 letters"):
        Identity.create(tmp_path / "x", name)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("file", FILES)
def test_files_open_to_others_are_refused(tmp_path, file):
    Identity.create(tmp_path, "alice")
    path = tmp_path / "keys" / file
    path.chmod(0o640)
    with pytest.raises(Refused, match=rf"mode 0640\); run: chmod 600 .*{file}"):
        Identity.load(tmp_path)
    path.chmod(0o400)
    assert Identity.load(tmp_path).card.name == "alice"


def test_a_folder_open_to_others_is_refused(tmp_path):
    Identity.create(tmp_path, "alice")
    (tmp_path / "keys").chmod(0o755)
    with pytest.raises(Refused, match=r"run: chmod 700 .*keys"):
        Identity.load(tmp_path)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe nothing", None])
def test_missing_and_damaged_files_are_named(tmp_path, file, content):
    Identity.create(tmp_path, "alice")
    path = tmp_path / "keys" / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(FileFormatError, match="missing" if content is None else "damaged") as caught:
        Identity.load(tmp_path)
    assert caught.value.path == str(path)
    assert "netdp peer restore" in str(caught.value)


@pytest.mark.parametrize("file", ["signing.key", "agreement.key", "tls.key"])
def test_a_key_of_somebody_else_is_found(tmp_path, bob, file):
    Identity.create(tmp_path, "alice")
    (tmp_path / "keys" / file).write_bytes((bob.home / "keys" / file).read_bytes())
    with pytest.raises(FileFormatError, match="not the key of the card"):
        Identity.load(tmp_path)
    other = "signing.key" if file != "signing.key" else "tls.key"
    (tmp_path / "keys" / file).write_bytes((bob.home / "keys" / other).read_bytes())
    with pytest.raises(FileFormatError, match="damaged: it should hold an"):
        Identity.load(tmp_path)


def test_no_identity(tmp_path):
    with pytest.raises(FileFormatError, match="no identity here"):
        Identity.load(tmp_path / "nowhere")


def test_the_certificate_says_what_it_should(alice):
    found = x509.load_der_x509_certificate(alice.card.certificate)
    assert alice.tls_certificate_pem == pem(alice.card.certificate)
    usage = found.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.key_cert_sign
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [TLS_NAME] == ["netdp-peer"]
    now = datetime.datetime.now(datetime.UTC)
    start, end = alice.card.valid
    assert datetime.timedelta(hours=23) < now - start < datetime.timedelta(hours=25)
    assert datetime.timedelta(days=824) < end - now <= datetime.timedelta(days=825)


def test_dates(alice):
    start, end = alice.card.valid
    second = datetime.timedelta(seconds=1)
    assert alice.card.date_problem() is None
    assert alice.card.date_problem(end) is None
    assert f"alice expired on {end:%Y-%m-%d}" in alice.card.date_problem(end + second)
    assert f"good from {start:%Y-%m-%d}" in alice.card.date_problem(start - second)
    with pytest.raises(InvalidValue, match="days must be a whole number ≥ 1, got 0"):
        certificate("a", ec.generate_private_key(ec.SECP256R1()), days=0)
    with pytest.raises(InvalidValue, match="year 10000"):
        certificate("a", ec.generate_private_key(ec.SECP256R1()), days=10**7)


def lax(key, *, signer=None, extensions=()):
    """A certificate as netdp makes none."""
    now, subject = datetime.datetime.now(datetime.UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 7)
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=9))
    for extension, critical in extensions:
        made = made.add_extension(extension, critical)
    algorithm = None if isinstance(signer or key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return made.sign(signer or key, algorithm).public_bytes(serialization.Encoding.DER)


def test_cards_with_certificates_that_could_vouch_for_others_are_refused(alice):
    good = x509.load_der_x509_certificate(alice.card.certificate)
    usual = {type(extension.value): (extension.value, extension.critical) for extension in good.extensions}
    key = ec.generate_private_key(ec.SECP256R1())
    signs = x509.KeyUsage(True, False, False, False, False, True, False, False, False)

    def changed(kind, *value):
        return [*(entry for other, entry in usual.items() if other is not kind), *value]

    cases = [
        (lax(key), "may issue others"),
        (lax(key, extensions=changed(x509.BasicConstraints, (x509.BasicConstraints(True, None), True))), "may issue"),
        (lax(key, extensions=changed(x509.KeyUsage)), "signatures only"),
        (lax(key, extensions=changed(x509.KeyUsage, (signs, True))), "signatures only"),
        (lax(key, extensions=changed(x509.KeyUsage, (usual[x509.KeyUsage][0], False))), "critical"),
        (lax(key, extensions=changed(x509.SubjectAlternativeName)), "not made out to 'netdp-peer'"),
        (lax(key, extensions=[*usual.values(), (x509.OCSPNoCheck(), False)]), "extensions that netdp does not make"),
        (lax(key, signer=ec.generate_private_key(ec.SECP256R1()), extensions=usual.values()), "signed by its own key"),
        (lax(ec.generate_private_key(ec.SECP384R1()), extensions=usual.values()), "P-256"),
        (lax(ed25519.Ed25519PrivateKey.generate(), extensions=usual.values()), "P-256"),
        (alice.card.certificate + b"x", "cannot be read"),
        (b"", "cannot be read"),
    ]
    dataclasses.replace(alice.card, certificate=lax(key, extensions=usual.values())).check()
    for der, problem in cases:
        with pytest.raises(InvalidValue, match=problem):
            dataclasses.replace(alice.card, certificate=der).check()
