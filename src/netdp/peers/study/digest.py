"""Whether two files are about the same study: its hash, and a digest of its terms, which a draft has, too.

The hash changes when keys, addresses or the nonce are filled in. What is asked, what is promised, the noise, the graph and the
names stay: their digest tells that a run or an audit belongs to the draft that it was made from.
"""

from __future__ import annotations

import hashlib
import json

from netdp.peers.study.study import Study


def terms_of(study: Study) -> str:
    """SHA-256 of the canonical form without nonce, addresses and keys, in hexadecimal.

    >>> from netdp.peers.study import Study, Task
    >>> task = Task(kind="mean", column="x", bounds=(0, 1))
    >>> draft = Study.plan("s", task, list("abcd"), graph="ring:4", epsilon=1.0, delta=1e-6)
    >>> terms_of(draft) == terms_of(draft.complete(nonce="0" * 32)), draft.hash == draft.complete().hash
    (True, False)
    """
    fields = json.loads(study.canonical)
    fields["nonce"] = ""
    for party in [*fields["party"], *([fields["curator"]] if "curator" in fields else [])]:
        for key in set(party) - {"name"}:
            party[key] = ""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def identity_of(study: Study) -> dict[str, str]:
    """What a file that is about a study states of it, so that it can be told later whose it is."""
    return {"name": study.name, "hash": study.hash.hex(), "terms": terms_of(study)}
