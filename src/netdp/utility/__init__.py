"""The error of the answer, predicted without running anything: one file per family."""

from . import varying  # noqa: F401  enters what it can predict
from .gossip import ExpectedError, expected_error

__all__ = ["ExpectedError", "expected_error"]
