"""The two classical ways, run: everybody publishes, or a curator answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.protocols import Central, Local
from netdp.views import Transcript

from .run import Normal, Run, Values, execute, prepared


@execute.register
def _average(protocol: Local | Central, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    """Everybody ends up with the same answer. Nobody sends to anybody in particular, so the transcript is empty."""
    if record is not None:
        raise Unsupported(f"{type(protocol).__name__} has no messages between parties to record")
    data, _ = prepared(values, protocol, None)
    if isinstance(protocol, Local):
        answer = (data + protocol.sigma * normal(data.shape)).mean(axis=0)
    else:
        answer = data.mean(axis=0) + protocol.sigma / np.sqrt(protocol.n) * normal((data.shape[1],))
    nothing = Transcript(protocol.n, (), np.empty(0, dtype=np.int64))
    return Run(np.tile(answer, (protocol.n, 1)), nothing, seed, protocol)
