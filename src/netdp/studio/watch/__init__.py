"""Watch parties at work: what is read from their homes, and the plain values in which the page gets it.

    place     which folder is watched: all homes of a `netdp up`, or one peer's home; and which study runs there
    tail      lines that are added to a trace, while it is written, moved aside or damaged
    home      one party: what its trace and its status file say, and whether it runs
    spent     what its ledger holds, towards whom
    about     what does not change: the study, the parties, the links, what was promised
    watch     all of it together, as one stream of changes

**Nobody is disturbed.** Homes are only read. Ledgers are opened so that no file changes and no commit waits (`Store.look`). Whether
a party runs is asked of the lock of its home, in the way of `netdp peer status`, and only of one that has been silent for a second.
Homes may come and go, and files may be cut, moved aside or damaged: lines that cannot be read are counted.

**Nothing secret is shown.** What is passed on goes through the closed list of fields of `netdp.peers.log` a second time, whatever
stands in the file: names of parties, kinds and keys of messages, times, words of a closed list. From a ledger come ε and how many
rows there are; answers are not read. Of one peer's home only that party's own is shown: what it sent and got, and its own ledger.

    watch = Watch(place)          # or Watch(place, study): the study file, where the place has none yet
    first = watch.first()
    change = watch.changes(first["next"])           # then changes(change["next"]), …; None if nothing happened
    for change in watch.events(): …                 # the same without numbers, for ever; begins with {"first": …}

`first()`:

    next      the number to ask for changes from
    what      "up" (all homes of a folder) or "home" (one party)
    me        the party whose home it is, or None
    eyes      one sentence: through whose eyes one looks
    study     {name, hash, complete, question, protected, unit, delta, kind, spread, how, colluders, attempts, absent, n, steps,
              rounds, visits}; hash is "" for a draft; spread is null but for masked sums; steps are those of a training, rounds
              those of gossip (counted from 0 in messages) and of a shuffle (handing over included), else 0; the index of a
              walking token is its number · visits + its step
    parties   [{name, x, y, curator, mine}]: x, y in the unit square (a curator may lie beside it); mine: its home is watched
    links     how many there are
    edges     [[u, v], …] numbers of parties; empty if there are more than can be drawn
    promised  [{against, who, epsilon, text, stated}]: ε at the study's δ against coalitions of this size; stated: what the
              study itself names, the others are certified beside it
    claim, assumptions       of what is promised, verbatim

`changes(since)`: only what changed; all keys but the first three may be missing.

    next      the number to ask for changes from
    now       seconds since 1970 on this machine
    live      whether anything may still come: somebody runs, or lines are still to be read
    promise   {promised, claim, assumptions} as in `first()`, certified again; where that is quick it is in `first()` already
    first     everything starts anew: another study runs here now, and this is its `first()` (then nothing else is there)
    moves     [[time, from, to, [[kind, attempt, author, index], …], more, {kind: number}], …]: frames, in order of arrival here,
              which may not be that of time; numbers of parties. Of a frame between two parties that are both watched its
              sender's word counts.
    events    [{time, party, event, …}]: what parties reported (`netdp.peers.log.EVENTS`) but for frames and status, and
              "killed" where a process vanished
    states    {party: {state, …}}: state is one of absent, starting, running, waiting, silent, answered, ended, stopped,
              failed, killed; of parties whose home is not watched linked, unlinked, beyond
    spent     {party: {rows, contributions, study: [{against, who, epsilon, text}], all: [...], named: [{name, epsilon, text}],
              problem}}: ε of this study alone, and of all studies of that ledger together; epsilon is null where nothing
              bounds it
    skipped   lines that could not be read, in all
    forgotten messages that are no longer kept here, in all
"""

from .watch import Watch

__all__ = ["Watch"]
