"""The parts of a report that say what everything rests on: assumptions, people, proofs, and the program that computed it."""

from __future__ import annotations

from .html import Markup, joined, listed, table, tag
from .wording import Facts, capital


def assumptions(said: Facts) -> Markup:
    """Every assumption in the words of the proof, with who sees to it."""
    rows = [[one["assumption"], capital(one["by"]), one["how"]] for one in said["assumed"]]
    more = " and #training-on-peers" if said["training"] else ""
    return joined([
        tag("p", "The numbers are true if all of these are. The sentences are those of the proofs. “Code” means: the peer of an "
            "honest owner does it, whatever it hears; where an owner is named, nobody else can."),
        table("Assumptions", ["Assumed", "Who sees to it", "How"], rows),
        tag("p", f"From docs/guarantees.md#real-peers{more}.", class_="soft"),
    ])  # fmt: skip


def parties(said: Facts) -> Markup:
    """Who takes part, with addresses, fingerprints and signatures as far as they are there."""
    signed, known = said["signatures"], said["parties"]
    out = [
        tag("p", "The study's hash, which covers all of it but comments: ", tag("span", said["hash"], class_="hash"))
    ]
    if not signed["complete"]:
        out.append(tag("p", "It is a draft, which cannot be signed yet. It lacks: " + "; ".join(said["lacking"]) + "."))
    else:
        many = f"All {len(known)}" if signed["all"] else f"{len(signed['signed'])} of {len(known)}"
        out.append(tag("p", f"{many} have signed exactly this study, by the signature files beside it."))
    if not any(one["fingerprint"] or one["address"] for one in known):
        return joined([*out, tag("p", ", ".join(one["name"] for one in known), class_="names")])
    rows = [
        [one["name"], one["address"] or "none yet", _in_two_lines(one["fingerprint"]), _signature(said, one["name"])]
        for one in known
    ]
    columns = ["Name", "Address", "Fingerprint", "Signature"]
    out.append(table("Parties, and the fingerprints of their public cards", columns, rows, mono=(2,)))
    names = {one["name"] for one in known}
    strange = [f"{name}: {why}" for name, why in signed["problems"].items() if name not in names]
    return joined([*out, *([listed(strange)] if strange else [])])


def _signature(said: Facts, name: str) -> str:
    return str(said["signatures"]["problems"].get(name, "signed")) if said["signatures"]["complete"] else ""


def _in_two_lines(mark: str | None) -> str:
    return "no card yet" if mark is None else joined([mark[:39], tag("br"), mark[40:]])


def references(said: Facts) -> Markup:
    """Where the method is proved."""
    return tag("ol", *(tag("li", one) for one in said["references"]))


def about(said: Facts) -> Markup:
    """What this file is, what computed it, and how to check it."""
    ran, audited = said["happened"], said["audit"]
    made_of = (
        "the study's file" + (", the ledgers of a run" if ran else "") + (", the result of an audit" if audited else "")
    )
    private = "none of the parties' data"
    private += ", but the answer" if ran and ran["answer"] else ""
    return joined([
        tag("p", f"This file was written by the command netdp report from {made_of}. It holds {private}, loads nothing and runs no "
            "program. It is not signed: whoever needs to be sure makes it anew from the study, whose hash is what parties "
            "sign. It "
            "states what was computed; it is no legal advice."),
        tag("p", "To check it: ", tag("code", "netdp study explain STUDY"), " computes the numbers anew, ",
            tag("code", "netdp study verify STUDY"), " tells who has signed, ", tag("code", "netdp ledger verify --home HOME"),
            " whether a ledger is as it was written, ", tag("code", "netdp audit STUDY"), " attacks what is claimed."),
        table("Exact versions", ["What", "Version"], list(said["versions"].items()), narrow=True),
    ])  # fmt: skip
