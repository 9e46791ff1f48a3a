"""A home that is stolen after a study, with all that ever went over any link: what it gives away of single values.

Of a study in attempts (pads and noise from keys that a party keeps) the exact value of its owner: the attack works. Of a sum that
its members open together nothing: keys, seeds and shares were drawn for the attempt, and are erased. Both attacks are the same,
and work again if erasure is taken out. (docs/proofs/peers.md#dealing, "What is erased")
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp.families.masked.protocol import from_bytes
from netdp.peers.desk import SECRETS, SHARES, Desk
from netdp.peers.ledger import store as stores
from netdp.peers.ledger.store import Store
from netdp.peers.messages import ItemKind, Key, roster_of
from netdp.peers.recovery.closing import KEY
from netdp.peers.recovery.dealing import AttemptSecrets, Dealing, Secret, Share, check_keys, context, recovered
from netdp.peers.recovery.group import scalar_bytes
from netdp.peers.recovery.masks import mask_key, masks, pad_key
from netdp.peers.streams import Words, noise_words, pads_of
from netdp.peers.streams import context as place_of

sys.path.append(str(Path(__file__).parent))

import trials

VICTIM = 2
OLD, NEW = "masked-sum", "masked-sum, one attempt"


class Theft:
    """A study that is over, and what a thief has of it: homes as they were left, and everything that was said."""

    def __init__(self, row, seed=3, end=True):
        self.trial = trials.Trial(row, seed, tolerant=False, calm=True)
        self.study, self.n = self.trial.study, self.trial.n
        for u in range(self.n):
            self.trial.at(0.0, self.trial.start, u)
        self.trial.run(until=trials.HORIZON, alive=range(self.n))
        assert all(told["ok"] for told in self.trial.told.values())
        assert len(self.trial.told) == self.n
        self.said = {key: next(iter(bodies)) for key, bodies in self.trial.words.said.items() if isinstance(key, Key)}
        if end:
            for peer in self.trial.peers:
                if peer is not None:
                    peer.store.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.trial.close()

    @property
    def protocol(self):
        return self.study.protocol_of(range(self.n))

    def truth(self, u):
        """What the thief is after, in whole numbers."""
        protocol = self.protocol
        from netdp.families.masked.protocol import quantised

        return int(quantised(protocol, self.trial.rows(u)[0])[0])

    def published(self, u):
        body = self.said[Key(ItemKind.CONTRIBUTION, 1, u)]
        return from_bytes(body[32:], self.protocol.q, self.study.task.dimension)

    def kept(self, u, place):
        """A secret of the attempt in a stolen home."""
        copy = self.trial.folder / f"stolen{u}.db"
        shutil.copy(self.trial.file(u), copy)
        with Store.open(copy) as store:
            return store.secret(self.study.hash, 1, place)

    def dealings(self):
        everybody = tuple(range(self.n))
        keys = {u: check_keys(self.said[Key(ItemKind.KEYS, 1, u)][:KEY]) for u in everybody}
        assert all(roster_of(self.said[Key(ItemKind.KEYS, 1, u)][KEY:]) == everybody for u in everybody)
        where = context(self.study.hash, 1, everybody, self.study.running.threshold)
        read = {
            u: Dealing.read(self.said[Key(ItemKind.DEALING, 1, u)], u, self.study.running.threshold, keys)
            for u in everybody
        }
        return where, read

    def values(self, noisy, secret, where):
        """All values whose noise, drawn from this secret, gives this number: noise belongs to the value that it is added to."""
        protocol, q = self.protocol, self.protocol.q
        reach, found = int(protocol.reach_steps) + 1, []
        for value in range(-reach, reach + 1):
            integers = np.array([value])
            noise = protocol.share_noise.sample((1,), noise_words(secret, where, integers.astype("<i8").tobytes()))
            if (value + int(noise[0]) - int(noisy)) % q == 0:
                found.append(value)
        return found

    def from_long_term_keys(self, u):
        """Pads from the lasting agreement key, noise from the lasting secret: the value, if that is how they were made."""
        person, others = self.trial.people[u], [v for v in range(self.n) if v != u]
        cards = dict(enumerate(self.study.cards))
        rosters = (tuple(range(self.n)), ())
        found = set()
        for roster in rosters:
            where = place_of(self.study.hash, 1, roster)
            pads = pads_of(person, cards, u, others, place_of(self.study.hash, 1, rosters[0]), 1, self.protocol.q)
            noisy = int(self.published(u)[0]) - int(pads[0])
            found |= set(self.values(noisy, person.noise_secret, where))
        return found

    def from_the_folder(self, u):
        """The same from the secrets of the attempt, if the home still has them."""
        kept = self.kept(u, SECRETS)
        if kept is None:
            return set()
        secrets, (where, read) = AttemptSecrets.from_bytes(kept), self.dealings()
        hidden = masks(secrets, u, read, where, 1, self.protocol.q)
        noisy = int(self.published(u)[0]) - int(hidden[0])
        return set(self.values(noisy, secrets.noise, place_of(self.study.hash, 1, ())))

    def from_all_folders(self, u):
        """One party's own number and noise, from the shares in everybody's home and those revealed; if that is enough."""
        (where, read), held = self.dealings(), {Secret.MASK: {}, Secret.PADS: {}}
        for v in range(self.n):
            revealed = self.said[Key(ItemKind.REVEAL, 1, v)]
            held[Secret.MASK][v] = int.from_bytes(revealed[32 + KEY * u : 32 + KEY * (u + 1)], "little")
            if (kept := self.kept(v, SHARES)) is not None:
                held[Secret.PADS][v] = Share.from_bytes(kept[2 * KEY * u : 2 * KEY * (u + 1)]).s
        if len(held[Secret.PADS]) < self.study.running.threshold:
            return None
        s, b = (recovered(where, read[u], kind, held[kind]) for kind in (Secret.PADS, Secret.MASK))
        number = int(self.published(u)[0]) - int(Words(mask_key(b, where, u))(1)[0])
        for v in range(self.n):
            if v != u:
                pad = int(Words(pad_key(s, read[v].S, where, u, v))(1)[0])
                number += -pad if v > u else pad
        return number % self.protocol.q


def drawn(theft, u):
    """The number that a party added, with its noise."""
    protocol, value = theft.protocol, np.array([theft.truth(u)])
    secret = theft.trial.noise_secret(u, 1)
    words = noise_words(secret, place_of(theft.study.hash, 1, ()), value.astype("<i8").tobytes())
    return int(value[0] + protocol.share_noise.sample((1,), words)[0]) % protocol.q


def test_a_study_in_attempts_gives_the_exact_value_away():
    with Theft(OLD) as theft:
        for u in (VICTIM, 0):
            found = theft.from_long_term_keys(u)  # another value may fit by chance: it is one of very few
            assert theft.truth(u) in found
            assert len(found) <= 4


def test_a_sum_that_members_open_gives_nothing_away():
    with Theft(NEW) as theft:
        for u in (VICTIM, 0):
            assert theft.from_long_term_keys(u) == set()
            assert theft.from_the_folder(u) == set()
        assert theft.from_all_folders(VICTIM) is None


def test_the_same_attack_works_where_nothing_is_erased(monkeypatch):
    monkeypatch.setattr(stores, "_erase", lambda *arguments: None)
    with Theft(NEW) as theft:
        assert theft.truth(VICTIM) in theft.from_the_folder(VICTIM)
        assert theft.from_all_folders(VICTIM) == drawn(theft, VICTIM)


@pytest.mark.parametrize("end", [True, False], ids=["closed", "killed"])
def test_no_file_of_any_home_holds_a_secret_of_the_attempt(end):
    """Also in the journal, whether the store was closed in order or its process was killed when the study was over."""
    with Theft(NEW, end=end) as theft:
        files = [file for file in theft.trial.folder.iterdir() if file.is_file()]
        content = {file.name: file.read_bytes() for file in files}
        where, read = theft.dealings()
        for u in range(theft.n):
            own = theft.trial.drawn[u, 1]
            wanted = {"s": scalar_bytes(own.s), "b": scalar_bytes(own.b), "noise": own.noise, "seed": own.seed,
                      "key": own.private_key}  # fmt: skip
            for v in range(theft.n):
                share = read[u].open_share(where, v, theft.trial.drawn[v, 1].private_key)
                wanted[f"share of p{v}"] = scalar_bytes(share.s)
            found = {
                (name, what) for name, body in content.items() for what, secret in wanted.items() if secret in body
            }
            assert not found, f"of p{u}: {found}"


def test_a_secret_that_is_there_is_found(monkeypatch):
    monkeypatch.setattr(stores, "_erase", lambda *arguments: None)
    with Theft(NEW) as theft:
        assert theft.trial.drawn[VICTIM, 1].noise in theft.trial.file(VICTIM).read_bytes()


def test_secrets_go_in_the_transaction_that_makes_them_needless(monkeypatch):
    """Own ones with the contribution, shares of others with the reveal: not later, when a crash or a thief may have come first."""
    left, contribute, say = [], Desk.contribute, Desk.say

    def contributed(desk, attempt, roster):
        item = contribute(desk, attempt, roster)
        left.append(("contribution", desk.secret(attempt, SECRETS)))
        return item

    def said(desk, kind, attempt, *given, **more):
        item = say(desk, kind, attempt, *given, **more)
        if kind == ItemKind.REVEAL:
            left.extend(("reveal", desk.secret(attempt, place)) for place in (SECRETS, SHARES))
        return item

    monkeypatch.setattr(Desk, "contribute", contributed)
    monkeypatch.setattr(Desk, "say", said)
    with Theft(NEW) as theft:
        assert {when for when, _ in left} == {"contribution", "reveal"}
        assert len(left) >= 3 * theft.n
        assert [when for when, secret in left if secret is not None] == []
