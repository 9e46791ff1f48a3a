"""All experiments, in the order of the documents, and the documents themselves: the names that users and errata refer to.

An experiment is imported when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

from netdp.errors import InvalidValue
from netdp.papers.experiment import Experiment

# id → "module:name" below netdp.papers. A test checks that the two agree and that none is forgotten.
MODULES: dict[str, str] = {
    "000-theorem1": "amplification.figures:THEOREM_1",
    "000-theorem2": "amplification.figures:THEOREM_2",
    "000-theorem3": "amplification.figures:THEOREM_3",
    "000-fig2a": "amplification.figures:FIGURE_2A",
    "000-fig2b": "amplification.figures:FIGURE_2B",
    "000-fig2c": "amplification.figures:FIGURE_2C",
    "000-fig2d": "amplification.figures:FIGURE_2D",
    "001-fig1": "replication:FIGURE_1",
    "001-fig2": "replication:FIGURE_2",
    "001-fig3": "replication:FIGURE_3",
    "001-fig4": "replication:FIGURE_4",
    "001-fig5": "replication:FIGURE_5",
    "001-fig6": "replication:FIGURE_6",
    "001-fig7": "replication:FIGURE_7",
    "002-topologies": "slides:TOPOLOGIES",
    "002-distance": "slides:DISTANCE",
    "002-walks": "slides:WALKS",
    "003-table1": "network_shuffling.tables:TABLE_1",
    "003-table3": "network_shuffling.tables:TABLE_3",
    "003-table4": "network_shuffling.tables:TABLE_4",
    "003-fig4": "network_shuffling.figures:FIGURE_4",
    "003-fig5": "network_shuffling.figures:FIGURE_5",
    "003-fig6": "network_shuffling.figures:FIGURE_6",
    "003-fig7": "network_shuffling.figures:FIGURE_7",
    "003-fig8": "network_shuffling.figures:FIGURE_8",
    "003-fig9": "network_shuffling.figures:FIGURE_9",
    "004-theorem1": "muffliato.tables:THEOREM_1",
    "004-table1": "muffliato.tables:TABLE_1",
    "004-table2": "muffliato.tables:TABLE_2",
    "004-fig1a": "muffliato.figure_1:FIGURE_1A",
    "004-fig1b": "muffliato.figure_1:FIGURE_1B",
    "004-fig1c": "muffliato.figure_1:FIGURE_1C",
    "004-fig2": "muffliato.figures:FIGURE_2",
    "004-fig3": "muffliato.figures:FIGURE_3",
    "004-fig4": "muffliato.figures:FIGURE_4",
    "004-fig5": "muffliato.figures:FIGURE_5",
    "ours-refresh": "ours.gossip:OURS_REFRESH",
    "ours-masks": "ours.gossip:OURS_MASKS",
    "ours-descent": "ours.gossip:OURS_DESCENT",
    "ours-error-hypercube": "ours.errors:ERROR_HYPERCUBE",
    "ours-error-karate": "ours.errors:ERROR_KARATE",
    "ours-error-geometric": "ours.errors:ERROR_GEOMETRIC",
    "ours-coalitions": "ours.figures:COALITIONS",
    "ours-cost": "ours.figures:COST",
    "ours-precision": "ours.figures:PRECISION",
    "ours-learning": "ours.learning:EXPERIMENT",
    "ours-links": "ours.figures:OURS_LINKS",
    "ours-responses": "ours.shuffling:RESPONSES",
    "ours-newest": "ours.newest:GUARANTEES",
    "ours-correlated": "ours.newest:CORRELATED",
}


def names() -> list[str]:
    """What may be typed after `netdp reproduce`."""
    return list(MODULES)


def experiment(name: str) -> Experiment:
    """The experiment of that name.

    >>> experiment("000-fig2a").place
    'Figure 2a'
    """
    if name not in MODULES:
        close = get_close_matches(name, MODULES, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see: netdp reproduce --list"
        raise InvalidValue(f"no figure or table is called {name!r}; {hint}")
    module, _, held = MODULES[name].partition(":")
    found = getattr(import_module(f"netdp.papers.{module}"), held)
    assert isinstance(found, Experiment)
    return found


@dataclass(frozen=True)
class Paper:
    """A document: how it is cited in a line, and in a word."""

    key: str
    short: str
    reference: str


PAPERS = {
    paper.key: paper
    for paper in (
        Paper(
            "000",
            "Privacy amplification by decentralization",
            "Edwige Cyffers and Aurélien Bellet: Privacy Amplification by Decentralization. arXiv:2012.05326v1, 2020 "
            "(AISTATS 2022 in a later version)",
        ),
        Paper(
            "001",
            "Replication report",
            "Arina Agaronyan, Grace Beyoko and Kathleen Rogan: Report on Privacy Amplification by Decentralization",
        ),
        Paper(
            "002",
            "Slides",
            "Aurélien Bellet: Better Privacy Guarantees for Decentralized Federated Learning. Slides, FL-Day, January 2023",
        ),
        Paper(
            "003",
            "Network shuffling",
            "Seng Pei Liew, Tsubasa Takahashi, Shun Takagi, Fumiyuki Kato, Yang Cao and Masatoshi Yoshikawa: Network "
            "Shuffling: Privacy Amplification via Random Walks. SIGMOD 2022",
        ),
        Paper(
            "004",
            "Muffliato",
            "Edwige Cyffers, Mathieu Even, Aurélien Bellet and Laurent Massoulié: Muffliato: Peer-to-Peer Privacy "
            "Amplification for Decentralized Optimization and Averaging. NeurIPS 2022",
        ),
        Paper("ours", "netdp", "This project: certified network privacy without a trusted server"),
    )
}
