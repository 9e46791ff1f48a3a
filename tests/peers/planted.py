"""Everything that must never be seen outside a party, and the shapes in which it could show up."""

import base64
import re

import numpy as np


def secrets_of(identity):
    """The secret keys of a party, as bytes."""
    return {
        "signing key": identity._signing.private_bytes_raw(),
        "agreement key": identity._agreement.private_bytes_raw(),
        "noise secret": identity.noise_secret,
        "tls key": identity._tls.private_numbers().private_value.to_bytes(32, "big"),
    }


def shapes(secret):
    """A secret of bytes in hexadecimal, base64 (both alphabets, any alignment) and decimal; each whole or its first half."""
    found = set()
    for part in (secret, secret[: max(8, len(secret) // 2)]):
        found |= {part.hex(), str(int.from_bytes(part, "big")), str(int.from_bytes(part, "little"))}
        for shift in range(3):
            text = base64.b64encode(bytes(shift) + part).decode()[4 if shift else 0 : -4]
            found |= {text, text.replace("+", "-").replace("/", "_")}
    return {text for text in found if len(text) >= 8}


def numbers(body, width=8):
    """The whole numbers in a body, as decimal text, if they are long enough to be recognised."""
    usable = body[: len(body) // width * width]
    return {str(abs(int(n))) for n in np.frombuffer(usable, dtype="<i8") if abs(int(n)) >= 10**5}


def found_in(text, wanted):
    """Which of these texts stand in it, not as a part of a longer number or word."""
    low = text.lower()
    return sorted(
        {one for one in wanted if one.lower() in low and re.search(rf"(?<![0-9a-z]){re.escape(one.lower())}", low)}
    )
