"""Models to learn, behind one small interface: the gradient of each record's own loss, clipped and added up in one place.

    Logistic(features)               two classes
    Multinomial(features, classes)   many
    Linear(features)                 a number
    from_torch(module, loss, …)      any torch.nn.Module whose records do not mix (extra `torch`)

>>> import numpy as np
>>> from netdp.models import Logistic, clipped_sum, prepared
>>> X, y = prepared([[0.5], [-0.5]]), np.array([1.0, 0.0])
>>> model = Logistic(2)
>>> clipped_sum(model, model.start(), X, y, clip=0.1).round(4).tolist()
[-0.0894, 0.0]
"""

from typing import Any

from .base import Model, NoFiniteGradient, clipped_rows, clipped_sum, whole_sum
from .linear import Linear, Logistic, Multinomial, built_in, prepared

__all__ = [
    "Linear",
    "Logistic",
    "Model",
    "Multinomial",
    "NoFiniteGradient",
    "built_in",
    "clipped_rows",
    "clipped_sum",
    "from_torch",
    "prepared",
    "whole_sum",
]


def from_torch(*arguments: Any, **options: Any) -> Model:
    """A `torch.nn.Module` and a loss as a model; see `netdp.models.torch.from_torch`, which is loaded only now."""
    from .torch import from_torch as made

    return made(*arguments, **options)
