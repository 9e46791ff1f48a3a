"""The study: the file that all parties sign, what is asked in it, and what it promises."""

from .scaling import ScalingTask
from .study import Study
from .task import Task
from .training import AnyTask, Training

__all__ = ["AnyTask", "ScalingTask", "Study", "Task", "Training"]
