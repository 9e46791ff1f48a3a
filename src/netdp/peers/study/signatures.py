r"""Who has signed a study: one small file per party, beside the study.

A party signs the study's hash, not the file: comments may change, nothing else. For study.toml the signatures lie in
study.signatures/NAME.sig, each two lines of text: the hash that was signed, in hexadecimal, so that "signed an older
version" can be told from "not a signature of this party", and the Ed25519 signature over b"netdp study 1\0" and that hash,
in base64. The first line is a remark for people: what counts is whether the signature fits the study's own hash.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from pathlib import Path

from netdp.errors import FileFormatError, Refused
from netdp.peers.identity import Card, Identity
from netdp.peers.study.study import Study

_CONTEXT = b"netdp study 1\0"

_HASH = re.compile("[0-9a-f]{64}")


class Signature(bytes):
    """A signature, and the hash that its file says was signed."""

    said: bytes

    def __new__(cls, signature: bytes, said: bytes) -> Signature:
        made = super().__new__(cls, signature)
        made.said = said
        return made


def message(study_hash: bytes) -> bytes:
    """What is signed."""
    return _CONTEXT + study_hash


def sign(study: Study, identity: Identity) -> Signature:
    """This party's signature; refuses a draft, a study whose noise breaks its promise, and one without this very card."""
    if not study.is_complete:
        raise Refused(f"the study {study.name!r} is a draft and cannot be signed: it lacks {'; '.join(study.lacking)}")
    name = identity.card.name
    if name not in study.everybody:
        raise Refused(f"{name} is no party of the study {study.name!r}; its parties: {', '.join(study.everybody)}")
    if study.card(study.index(name)) != identity.card:
        raise Refused(
            f"the study {study.name!r} has another card under the name {name} (fingerprint "
            f"{study.card(study.index(name)).fingerprint[:19]} …, yours {identity.card.fingerprint[:19]} …); have yours put in"
        )
    study.check_promise()
    return Signature(identity.sign(message(study.hash)), study.hash)


def folder(study_path: str | os.PathLike[str]) -> Path:
    """Where the signatures of a study file lie.

    >>> folder("here/study.toml").as_posix()
    'here/study.signatures'
    """
    return Path(study_path).with_suffix(".signatures")


def write(study_path: str | os.PathLike[str], name: str, signature: Signature) -> Path:
    """Put a party's signature beside the study, in place of an older one of the same party."""
    where = folder(study_path)
    where.mkdir(exist_ok=True)
    path = where / f"{name}.sig"
    path.write_text(f"{signature.said.hex()}\n{base64.b64encode(signature).decode()}\n", "ascii")
    return path


def read_all(study_path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The signatures beside a study, by the party's name."""
    found: dict[str, bytes] = {}
    where = folder(study_path)
    for path in sorted(where.glob("*.sig")) if where.is_dir() else ():
        try:
            lines = path.read_text("ascii").split()
            said, text = lines
            if not _HASH.fullmatch(said):
                raise ValueError
            found[path.stem] = Signature(base64.b64decode(text, validate=True), bytes.fromhex(said))
        except OSError as error:
            raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
        except (ValueError, binascii.Error):
            raise FileFormatError(
                path, None, "is no signature: a line with the study's hash and a line of base64; copy it again"
            ) from None
    return found


def problems(study: Study, signatures: Mapping[str, bytes]) -> dict[str, str]:
    """What is wrong with whose signature, in words; empty if all parties have signed this very study."""
    wrong: dict[str, str] = {}
    for u, name in enumerate(study.everybody):
        if name not in signatures:
            wrong[name] = "has not signed"
        elif problem := _problem(study, study.card(u), signatures[name]):
            wrong[name] = problem
    for name in signatures:
        if name not in study.everybody:
            wrong[name] = "signed, but is no party of the study; take its file away"
    return wrong


def _problem(study: Study, card: Card, signature: bytes) -> str | None:
    if card.verify(message(study.hash), bytes(signature)):
        return None
    said = getattr(signature, "said", study.hash)
    if said != study.hash and card.verify(message(said), bytes(signature)):
        return f"signed another version ({said.hex()[:12]}…); the study changed after signing, or the signature is of another one"
    return "the signature is not its own: made with another key, or damaged"


def verify_all(study: Study, signatures: Mapping[str, bytes]) -> None:
    """Refuse unless every party has signed exactly this study; names who is missing or wrong."""
    if not study.is_complete:
        raise Refused(f"the study {study.name!r} is a draft; it lacks {'; '.join(study.lacking)}")
    if wrong := problems(study, signatures):
        said = "; ".join(f"{name}: {problem}" for name, problem in list(wrong.items())[:5])
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise Refused(f"not all parties have signed the study {study.name!r} ({study.hash.hex()[:12]}…): {said}{more}")
