"""Learning: models trained by gossip, the tables of the papers, a scikit-learn estimator (extra `learn`)."""

from __future__ import annotations

from typing import Any

from .descent import Trained, train
from .logistic import LogisticParties, accuracy, objective
from .tables import LABELS, Table, table
from .walk import WalkTrained, train_walk, train_walks

__all__ = [
    "LABELS",
    "GossipLogisticRegression",
    "LogisticParties",
    "Table",
    "Trained",
    "WalkLogisticRegression",
    "WalkTrained",
    "accuracy",
    "objective",
    "table",
    "train",
    "train_walk",
    "train_walks",
]


def __getattr__(name: str) -> Any:
    if name == "GossipLogisticRegression":  # scikit-learn is loaded only for those who ask for it
        from .estimator import GossipLogisticRegression

        return GossipLogisticRegression
    if name == "WalkLogisticRegression":
        from .walk_estimator import WalkLogisticRegression

        return WalkLogisticRegression
    raise AttributeError(f"module 'netdp.learn' has no attribute {name!r}")
