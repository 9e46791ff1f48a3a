"""Against whom a study's ε holds: parties that look, or parties that do what they like; and what nothing in netdp prevents.

The words of docs/threat-model.md, shortened, kind by kind; a test compares them with that page. Three kinds of others:
*curious* parties follow the protocol and look at all they are told; *malicious* ones send what they like, together, with
valid keys of their own; *strangers* have no keys in the study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CURIOUS = "curious: they follow the protocol, put together all they are told and keep it for ever"
MALICIOUS = "malicious: they send what they like, when they like, together, with valid keys of their own"
STRANGERS = (
    "A stranger on the network sees who talks to whom, when and how much; no value, no noise and no contribution. A caller "
    "without "
    "a certificate that the study lists is turned away."
)


@dataclass(frozen=True)
class Company:
    """What is promised against which company.

    against    the strongest company against which the study's ε holds
    malicious  what a party is promised against malicious company, in words
    answer     how far malicious company can spoil the answer, in words
    """

    against: Literal["curious", "malicious"]
    malicious: str
    answer: str


COMPANY: dict[str, Company] = {
    "masked-sum": Company(
        "malicious",
        "The same ε. A party's numbers leave once per attempt, under pads that the coalition lacks for every honest pair; "
        "nothing "
        "else that it sends follows from its data. Attempts that are made to fail are in the price.",
        "One lie can make the sum any number: a malicious member adds anything, and masked numbers cannot be checked.",
    ),
    "masked-descent": Company(
        "malicious",
        "The same ε, all iterations and the evaluation together. Whatever models the coalition makes a party compute at, "
        "its rows "
        "move what it publishes by no more than the clip.",
        "A malicious member adds any number to any sum. Held-out rows of the honest parties show a spoilt model, if their "
        "count is "
        "not spoilt too. One party that stays away ends the training.",
    ),
    "ring-sum": Company(
        "curious",
        "Not the study's ε. The neighbours before and after a party, together, see what it added with its own share of "
        "noise only; "
        "who is before chooses the token. A study planned for two colluders covers that pair.",
        "A holder can replace the token by any number that honest ones could have reached; nobody would know.",
    ),
    "ring-histogram": Company(
        "curious",
        "Not the study's ε, but the local loss of a party's own randomized answers, all rounds together: nobody gets more.",
        "Which cells a malicious holder puts its elements in is up to it; counts that do not add up are refused.",
    ),
    "walk-sum": Company(
        "curious",
        "Not the study's ε. A malicious holder sends the token where it likes; up to a bounded number of visits a "
        "malicious "
        "coalition sees single contributions, each with the noise of its visit.",
        "A holder can replace what it holds; numbers that cannot be are refused.",
    ),
    "walk-histogram": Company(
        "curious",
        "Not the study's ε. A malicious coalition that sends a party many tokens sees as many of its randomized answers, "
        "each "
        "with its own local loss, up to a bound on visits.",
        "Which cells a malicious holder puts its elements in is up to it; counts that do not add up are refused.",
    ),
    "gossip": Company(
        "curious",
        "Not the study's ε, but at most the local loss of a party's first noisy state, which is more.",
        "A state can be any number in proportion: one malicious party moves all estimates. Who stops sending ends the "
        "study.",
    ),
    "randomized-gossip": Company(
        "malicious",
        "The same ε, against any number of them: local privacy of the first noisy value, in any order and after any loss. "
        "What "
        "single parties really learned, stated after a run, is about curious ones.",
        "A state can be any number that fits: one malicious party moves all estimates.",
    ),
    "shuffle": Company(
        "curious",
        "Not the study's ε, but the local loss ε₀ of the reports, of which each attempt has one: a report is randomized "
        "before it "
        "is sealed. Relays that hold reports back or hand them over early thin the crowd in which one hides.",
        "The curator computes the total alone and can say anything, signed. Relays can drop reports, not copy them.",
    ),
}
"""By the kind of protocol."""

OPEN: dict[str, str] = {
    "Poisoning": "A party may lie about its own data within the bounds. No protocol that hides values can see that: every "
    "answer is "
    "about what was handed in.",
    "Refusing": "Whoever must take part can stay away or stall until patience is over.",
    "Time and traffic": "Who watches the network sees which links are busy when. Losses are stated about what parties are told.",
    "Sybils": "Netdp counts keys, not people. Who signs a study decides that its parties are different people.",
    "Stolen keys, stolen folders": "Who has a party's keys can speak as it and open what was masked for it.",
    "Equivocation nobody sees": "Two signed items prove a cheat only where one honest party hears both.",
    "A party that never comes back": "An attempt counts in its ledger as broken off until its end is known.",
    "Links": "Whoever drafts a study draws its links. They must not depend on anybody's data: the drafter's duty.",
    "Which values can be checked": "Masked numbers never: any is as likely as any other. Elsewhere numbers out of all "
    "proportion are refused; a lie within that looks like noise.",
}
"""What nothing in netdp prevents, for all protocols."""
