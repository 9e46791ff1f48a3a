"""Protocols that are stated as matrices, run: y = A x + B z, and what the parties read off it."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.views import LinearGaussianView, LinearProtocol, Transcript

from .run import Normal, Run, Values, execute


@execute.register_with_subclasses
def _linear(
    protocol: LinearGaussianView | LinearProtocol, values: Values, seed: int, normal: Normal, record: Any
) -> Run:
    view = protocol.view() if isinstance(protocol, LinearProtocol) else protocol
    if view.reading is None:
        raise Unsupported(f"{type(protocol).__name__} does not say how the answer is read: state reading= in its view")
    if record is not None:
        raise Unsupported(f"{type(protocol).__name__}: what observers see is view.seen_by(observers) of its matrices")
    data = values.of(view)
    messages = view.data @ data[view.owners] + view.noise @ normal((view.noise.shape[1], data.shape[1]))
    answers = np.broadcast_to(view.reading @ messages, (view.n, data.shape[1]))
    return Run(answers, Transcript(view.n, (), np.empty(0, dtype=np.int64)), seed, protocol)
