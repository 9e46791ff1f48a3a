"""Attacks on our own guarantees: measured lower bounds on ε beside what is claimed.

A claimed ε is believed when an attack with the observers' full view cannot beat it, and when the same attack catches a planted
bug. `audit` runs the strongest attacks there are on the pairs that matter most; `audit_pair` attacks one.
"""

from . import (  # noqa: F401  register their attacks
    descents,
    linear,
    masked,
    membership,
    shuffles,
    token_descents,
    token_histograms,
    walks,
)
from .attack import SIMULATOR, Attack, Scores, collect
from .bounds import Measured, Point, clopper_pearson, measure, one_run
from .canaries import OneRun, one_run_audit
from .findings import Audit, Check, Finding, Verdict
from .front import audit, audit_pair, audit_these, look
from .pairs import Pair
from .table import attacks

__all__ = [
    "SIMULATOR",
    "Attack",
    "Audit",
    "Check",
    "Finding",
    "Measured",
    "OneRun",
    "Pair",
    "Point",
    "Scores",
    "Verdict",
    "attacks",
    "audit",
    "audit_pair",
    "audit_these",
    "clopper_pearson",
    "collect",
    "look",
    "measure",
    "one_run",
    "one_run_audit",
]
