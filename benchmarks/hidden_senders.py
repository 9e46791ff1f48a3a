"""What an anonymous channel for tokens would cost, and what it would bring: `python benchmarks/hidden_senders.py`.

A walk whose sender is hidden is nearly as private as a curator (docs/proofs/token.md#secret-walk), but only over a channel in
which nobody who looks, at a link or as a holder, can tell who sends. The smallest honest one: the token is wrapped in as many
layers as there are relays (HPKE, each opened by one party), all envelopes have one size, and in every round *every* party
sends exactly one, most of them cover: who sends only what it has to pass on tells when it holds the token. So each of the
token's steps takes relays + 1 rounds, and each round an envelope of everybody.

Printed, for sums at ε = 1 and δ = 10⁻⁶: the error with senders known, with senders hidden, and of a masked sum, over the best
curator's; then what the channel would cost one party: envelopes, bytes (sizes are those of real envelopes), processor seconds
(opening is measured), and how long it would take with 50 ms a round. Beside it in docs/reference/speed.md: a masked sum.
"""

from __future__ import annotations

import math
import tempfile
from itertools import repeat
from pathlib import Path

from measure import few, seconds, size
from netdp import MaskedSum, WalkSum, calibrate, expected_error, graphs
from netdp.peers.identity import Identity
from netdp.peers.streams import seal, unseal

EPSILON, DELTA = 1.0, 1e-6
VISITS = size(20, quick=4)
RELAYS = 3
ROUND = 0.05
TOKEN = 8 + 8 + 64  # the number, the step, and a signature
OPENED = size(200, quick=2)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        people = [Identity.create(Path(folder) / str(u), f"p{u}") for u in range(RELAYS + 1)]
    study, roster = bytes(32), tuple(range(4))
    envelope = bytes(TOKEN)
    for relay in people:
        envelope = seal(relay.card, envelope, study, 1, roster)
    opening = seconds(lambda: [unseal(people[-1], envelope, study, 1, roster) for _ in repeat(None, OPENED)]) / OPENED
    print(f"an envelope of {RELAYS + 1} layers: {len(envelope)} bytes; a layer is opened in {1e3 * opening:.2f} ms\n")
    print("     n   over the best curator's error          one party, senders hidden")
    print("         known   hidden   masked sum       envelopes       MB   processor s    takes")
    for n in few((16, 100, 1000)):
        curator = math.sqrt(2) / (n * EPSILON)
        walks = {
            sender: expected_error(
                calibrate(WalkSum(n, steps=VISITS * n, sigma=5.0, sender=sender), EPSILON, DELTA)
            ).rmse
            for sender in ("known", "hidden")
        }
        masked = MaskedSum(graphs.complete(n), sigma=1.0, law="laplace", honest=n - 1, grid=2.0**-10)
        error = expected_error(calibrate(masked, EPSILON, 0.0)).rmse
        sent = VISITS * n * (RELAYS + 1)
        print(
            f"{n:6,}  {walks['known'] / curator:6.2f}  {walks['hidden'] / curator:7.2f}  {error / curator:11.2f}   "
            f"{sent:13,}  {sent * len(envelope) / 1e6:7.2f}  {sent * opening:12.1f}  {sent * ROUND / 60:7.1f} min"
        )


if __name__ == "__main__":
    main()
