"""A roster in which everybody has dealt, for tests."""

from dataclasses import dataclass, field

from netdp.peers.recovery.dealing import AttemptSecrets, Dealing, Secret, advertised, check_together, context, deal

STUDY = b"a study's hash of thirty-two byt"


@dataclass
class Attempt:
    """Secrets, keys and dealings of all members of a roster."""

    roster: tuple[int, ...]
    threshold: int
    number: int = 1
    study: bytes = STUDY
    secrets: dict[int, AttemptSecrets] = field(default_factory=dict)

    def __post_init__(self):
        for u in self.roster:
            self.secrets.setdefault(u, AttemptSecrets.fresh())
        self.context = context(self.study, self.number, self.roster, self.threshold)
        self.keys = {u: advertised(self.secrets[u]) for u in self.roster}
        self.bodies = {u: deal(self.context, u, self.threshold, self.keys, self.secrets[u]) for u in self.roster}
        self.dealings = {u: self.read(u) for u in self.roster}

    def read(self, dealer, body=None):
        return Dealing.read(self.bodies[dealer] if body is None else body, dealer, self.threshold, self.keys)

    def check(self):
        for dealing in self.dealings.values():
            dealing.check(self.context)
        check_together(self.dealings.values())

    def share(self, dealer, holder):
        return self.dealings[dealer].open_share(self.context, holder, self.secrets[holder].private_key)

    def shares(self, dealer, kind, holders):
        return {holder: self.share(dealer, holder).of(kind) for holder in holders}

    def secret(self, dealer, kind):
        return self.secrets[dealer].s if kind is Secret.PADS else self.secrets[dealer].b
