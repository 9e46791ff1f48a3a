"""A sum that survives its parties: secrets of one attempt, dealt in shares that all can check, and one set that all agree on.

    group        the group of prime order in which keys lie
    polynomials  shares of a number, and the number from its shares
    dealing      what a party deals at the start of an attempt, and what of it is checked, disputed and revealed
    masks        what hides a contribution, and what is left of a total once the masks of those who are away are removed
    ballot       whose contributions are added up: a locked ballot in two phases
    opening      one party's way through an attempt, from fresh keys to its vote
    closing      and from the sealed roster to the answer

The first five are pure computation: nothing there opens a file or a connection, and nothing remembers.
"""
