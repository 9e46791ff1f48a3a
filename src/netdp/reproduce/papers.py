"""The five documents whose figures are redone, and our own; the names that verdicts and errata refer to."""

from __future__ import annotations

from dataclasses import dataclass


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
