"""Learning: scikit-learn estimators (extra `learn`), the tables of the papers, and the trainers of `netdp.simulate`."""

from __future__ import annotations

from typing import Any

from netdp.models.files import TrainedModel, load_model
from netdp.planning.learning import LearningPlan, plan_learning
from netdp.planning.training import TrainingPlan, plan_training
from netdp.planning.training_outlook import NoiseWarning
from netdp.simulate.descent import FromGradients, Losses, Trained, train
from netdp.simulate.logistic import LogisticParties, accuracy, objective
from netdp.simulate.model_parties import ModelParties
from netdp.simulate.poisoning import Attacked, attacked, combine, poisoned, replaced_tokens
from netdp.simulate.ring_descent import train_ring
from netdp.simulate.walk_descent import WalkTrained, train_walk, train_walks
from netdp.utility import ExcessRisk, Landscape, influence

from .scaling import PreprocessingWarning
from .tables import LABELS, Table, table

__all__ = [
    "LABELS",
    "Attacked",
    "ExcessRisk",
    "FromGradients",
    "GossipLogisticRegression",
    "Landscape",
    "LearningPlan",
    "LinearRegression",
    "LogisticParties",
    "LogisticRegression",
    "Losses",
    "ModelParties",
    "NoiseWarning",
    "PreprocessingWarning",
    "Table",
    "Trained",
    "TrainedModel",
    "TrainingPlan",
    "WalkLogisticRegression",
    "WalkTrained",
    "accuracy",
    "attacked",
    "combine",
    "influence",
    "load_model",
    "objective",
    "plan_learning",
    "plan_training",
    "poisoned",
    "replaced_tokens",
    "table",
    "train",
    "train_ring",
    "train_walk",
    "train_walks",
]


def __getattr__(name: str) -> Any:
    if name == "GossipLogisticRegression":  # scikit-learn is loaded only for those who ask for it
        from .estimator import GossipLogisticRegression

        return GossipLogisticRegression
    if name in ("LinearRegression", "LogisticRegression"):
        from . import regressions

        return getattr(regressions, name)
    if name == "WalkLogisticRegression":
        from .walk_estimator import WalkLogisticRegression

        return WalkLogisticRegression
    raise AttributeError(f"module 'netdp.learn' has no attribute {name!r}")
