"""What it costs a party that sums survive the loss of parties: `python benchmarks/recovery.py`. Rosters of 16, 50 and 200.

Everybody deals its secrets to everybody (`netdp/peers/recovery`). Of one party: its dealing made; the dealings of all others
read, checked, and their shares opened; its own contribution masked; and, at the end, the secrets of all recovered from what t of
them revealed, and the total unmasked, with nobody away and with as many away as may be. Beside it what was measured when the
protocol was drafted. The last figure: one party revealed nothing but false shares, and they are looked at one by one.
"""

from __future__ import annotations

import time

import numpy as np

from measure import few, size
from netdp.peers.recovery.dealing import (
    AttemptSecrets,
    Dealing,
    Secret,
    advertised,
    check_together,
    context,
    deal,
    recovered,
)
from netdp.peers.recovery.masks import masks, unmask

CASES = [(16, 3, 2, "6 ms, 3 KB"), (50, 10, 5, "21 ms, 9 KB"), (200, 40, 20, "170 ms, 52 KB")]
"""Parties, colluders, absent, and what the draft took before the contribution."""

MODULUS = 2**64


class Clock:
    """Milliseconds of the processor, by name."""

    def __init__(self):
        self.spent = {}

    def __call__(self, name, work, share=1.0):
        start = time.process_time()
        found = work()
        self.spent[name] = 1e3 * share * (time.process_time() - start)
        return found


def measured(n, colluders, absent, columns):
    """One party's part of an attempt. Its own dealing is one of all; those of others are made beforehand."""
    roster, t = tuple(range(n)), n - colluders - absent
    place, secrets = context(b"benchmark", 1, roster, t), {u: AttemptSecrets.fresh() for u in roster}
    keys = {u: advertised(secrets[u]) for u in roster}
    bodies = {u: deal(place, u, t, keys, secrets[u]) for u in roster}
    clock = Clock()
    clock("deal", lambda: deal(place, 0, t, keys, secrets[0]))
    dealings = clock("read", lambda: {u: Dealing.read(bodies[u], u, t, keys) for u in roster})
    clock("check", lambda: ([d.check(place) for d in dealings.values()], check_together(dealings.values())))
    clock("open", lambda: [d.open_share(place, 0, secrets[0].private_key) for d in dealings.values()])
    y = {u: masks(secrets[u], u, dealings, place, columns, MODULUS) for u in roster[1:]}
    y[0] = clock("mask", lambda: masks(secrets[0], 0, dealings, place, columns, MODULUS))
    opened = {
        v: {u: d.open_share(place, v, secrets[v].private_key) for u, d in dealings.items()} for v in roster[: t + 1]
    }

    def answer(included, liar=None):
        inside = frozenset(included)
        found = {Secret.PADS: {}, Secret.MASK: {}}
        for u in roster:
            kind = Secret.MASK if u in inside else Secret.PADS
            shares = {v: opened[v][u].of(kind) ^ (v == liar) for v in roster[: t + (liar is not None)]}
            found[kind][u] = recovered(place, dealings[u], kind, shares)
        total = np.add.reduce([y[u] for u in included])
        return unmask(total, included, roster, found[Secret.MASK], found[Secret.PADS], dealings, place, MODULUS)

    sums = [
        clock("answer", lambda: answer(roster)),
        clock("some away", lambda: answer(roster[: n - absent])),
        clock("one lies", lambda: answer(roster, liar=0)),
    ]
    if any(found.any() for found in sums):
        raise RuntimeError("masks of zeros left something behind")
    return t, clock.spent, len(keys[0]) + len(bodies[0])


if __name__ == "__main__":
    columns = size(10, quick=2)
    print(f"{columns} numbers; milliseconds of one party's processor, and what it advertises and deals, in bytes")
    for n, colluders, absent, drafted in few(CASES):
        t, spent, sent = measured(n, colluders, absent, columns)
        before = sum(spent[name] for name in ("deal", "read", "check", "open"))
        parts = ", ".join(f"{name} {spent[name]:.1f}" for name in spent)
        print(
            f"n = {n:3}, t = {t:3}: {before:6.1f} ms, {sent:6,} bytes before it contributes (drafted: {drafted}); {parts}",
            flush=True,
        )
