"""One identity runs once on a machine, even if its folder was copied; and never without its memory.

**Once.** The lock beside `peer.db` keeps two processes from one folder. A copy of the folder has a lock of its own. So a running
peer also holds a name that is derived from its keys: an abstract Unix socket, which Linux gives to one process at a time and
takes back when that process ends, however it ends. The name is an HMAC under the noise secret: it tells nothing, and
somebody without the keys cannot take it beforehand.

**Not without its memory.** `peer.db` remembers what was published. Keys that were used are marked (`keys/used`), so if the file
is gone, or somebody copies the keys alone to another folder, the peer does not begin again with an empty memory: it could
publish a second number in an attempt where a first one stands. The way out is a backup, which brings new keys.

The first does not see copies on other machines, nor in a container with a network of its own. There the peer's address, which
only one of the two can have, its neighbours, who turn an older link into a newer one, and what they hold in its name are the
next guards; docs/guarantees.md#real-peers says what is left to the owner.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from netdp.errors import NetdpError, Refused

if TYPE_CHECKING:
    from .identity import Identity


def alone(identity: Identity) -> socket.socket | None:
    """Hold the name of this identity until the socket is closed; refuses if another process has it. None but on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    name = "\0netdp-" + hmac.new(identity.noise_secret, b"netdp alone 1", hashlib.sha256).hexdigest()[:32]
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(name)
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise Refused(
            f"another process on this machine runs {identity.card.name} with the very same keys, from another folder: "
            f"{identity.home} is a copy, or was copied. Two of them could publish different numbers under one pad. End one of "
            "them and never start the older folder again"
        ) from None
    return held


def check_memory(home: Path) -> None:
    """Refuse keys that were used, without the file that remembers for what."""
    if (home / "keys" / "used").exists() and not (home / "peer.db").exists():
        raise Refused(
            f"{home / 'peer.db'} is gone, and the keys in {home} were used before: what they published is not known here, and to "
            "publish again could uncover data. Put nothing back by hand; make a new home from a backup (netdp peer restore), or a "
            "new party (netdp peer init)"
        )


def mark_used(home: Path) -> None:
    """Mark the keys as used, durably, before anything is sent. A folder of keys that is read-only stays as it is."""
    try:
        with os.fdopen(os.open(home / "keys" / "used", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as mark:
            os.fsync(mark.fileno())
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EEXIST, errno.EACCES, errno.EPERM):
            raise NetdpError(
                f"{home / 'keys'} cannot be marked as used: {error.strerror}; nothing was sent, start again when that is cured"
            ) from None
    else:
        folder = os.open(home / "keys", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
