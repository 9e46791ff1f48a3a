"""Which two inputs a guarantee calls neighbours.

A privacy statement compares what is seen under two neighbouring inputs. Numbers for different relations
cannot be compared or composed as they stand, so every guarantee in netdp carries its relation.

Reference: Dwork, Roth, *The Algorithmic Foundations of Differential Privacy* (2014), section 2.3; zero-out:
Kairouz et al., *Practical and Private (Deep) Learning without Sampling or Shuffling* (2021).
"""

from __future__ import annotations

from enum import StrEnum


class Adjacency(StrEnum):
    """The neighbouring relation of a guarantee.

    >>> Adjacency("replace") is Adjacency.REPLACE
    True
    >>> print(Adjacency.ZERO_OUT.meaning)
    one user's whole data is replaced by a null contribution; who takes part is known
    """

    REPLACE = "replace"
    """The default: user level. One user's *whole* data (every contribution it ever makes) is replaced by any
    other admissible data; the set of users is the same and public. A contribution moves by at most Δ, the
    diameter."""

    ZERO_OUT = "zero-out"
    """One user's whole data is replaced by a null contribution (zero). The set of users stays public. A
    contribution moves by at most its norm bound, half the diameter of the ball: μ is up to twice as small as
    under REPLACE."""

    ADD_REMOVE = "add-remove"
    """One user with all its data joins or leaves. Whether the user takes part is itself protected, so the
    number of users must not be read off the view. Where single records are protected: one record joins or leaves
    a party's data, so the number of records must not be read off the view; the parties are public."""

    @property
    def meaning(self) -> str:
        """One plain clause for reports."""
        return _MEANING[self]

    @property
    def meaning_for_records(self) -> str:
        """The same where single records are protected: the clause for reports."""
        return _OF_RECORDS[self]


_MEANING = {
    Adjacency.REPLACE: "one user's whole data is replaced by any other data (user level)",
    Adjacency.ZERO_OUT: "one user's whole data is replaced by a null contribution; who takes part is known",
    Adjacency.ADD_REMOVE: "one user with all its data joins or leaves",
}
_OF_RECORDS = {
    Adjacency.REPLACE: "one record of one party is replaced by any other record",
    Adjacency.ZERO_OUT: "one record of one party is replaced by a null contribution",
    Adjacency.ADD_REMOVE: "one record of one party is added or removed; which parties take part is public",
}
