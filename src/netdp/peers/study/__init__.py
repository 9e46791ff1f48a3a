"""The study: the file that all parties sign, what is asked in it, and what it promises."""

from .scaling import Scaling
from .study import Study
from .task import Task
from .training import Training

__all__ = ["Scaling", "Study", "Task", "Training"]
