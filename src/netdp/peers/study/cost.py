"""What a training will cost, said before it starts: rounds, bytes, memory, time; and whether it will be worth it.

In every round each party's numbers reach each other party once: a step is passed on to those only who do not hear its author. So
a party sends about (n − 1) times `wire width · d` bytes, its own or somebody else's. What is computed and held:
`netdp.utility.descent_cost`. Seconds are an estimate for a network of 100 Mbit/s; every round waits for the slowest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netdp.protocols import MaskedDescent

from .training import MANY

if TYPE_CHECKING:
    from .study import Study

_OVERHEAD = 180  # bytes of a step besides its numbers: digest, key, signature, frame
_ROUND = 0.05  # seconds: messages there and back, durable writes
_MESSAGE = 1.5e-3  # seconds of computing for each step of another party: links, signatures
_BANDWIDTH = 12.5e6  # bytes a second
_MUCH = 2e9  # bytes that a party sends in all: worth a loud word
_LONG = 6 * 3600.0


def cost_of(study: Study) -> dict[str, Any]:
    """Rounds, bytes that a party sends, bytes of memory and seconds, as plain values."""
    from netdp.utility.descent_cost import expected_cost

    protocol, others = study.protocol(), study.n - 1
    assert isinstance(protocol, MaskedDescent)
    rounds = study.running.most_steps()
    alone = expected_cost(protocol, latency=0.0, bandwidth=1e30)  # what is computed; links below
    sent = others * (alone.step_bytes + _OVERHEAD)
    return {
        "rounds": rounds,
        "bytes_per_round": sent,
        "bytes": rounds * sent,
        "memory": alone.memory_bytes,
        "seconds": alone.seconds + rounds * (_ROUND + others * _MESSAGE + sent / _BANDWIDTH),
    }


def cost_lines(study: Study) -> list[str]:
    """The same in words; a model that is large, or a training that is long, loudly."""
    from netdp.utility.descent_cost import duration, size

    task, cost = study.task, cost_of(study)
    lines = [
        f"{cost['rounds']:,} rounds; in each every party sends about {size(cost['bytes_per_round'])}, {size(cost['bytes'])} in "
        f"all, and holds {size(cost['memory'])} of numbers in memory. That takes about {duration(cost['seconds'])} on a network "
        "of 100 Mbit/s (an estimate; gradients of a model that is code come on top); every round waits for the slowest."
    ]
    if task.dimension > MANY or cost["bytes"] > _MUCH or cost["seconds"] > _LONG:
        lines.append(
            f"THIS IS LARGE: the model has {task.dimension:,} numbers, and every party sends all of them, with noise, to every "
            f"other in every round: {size(cost['bytes'] * study.n)} by all parties together. Noise grows with the number of "
            "numbers, too: a smaller model often ends up better."
        )
    return lines


def warnings_of(study: Study) -> tuple[str, ...]:
    """Why this training will hardly lead anywhere, if so: predicted from the sizes alone."""
    from netdp.planning.training import LEAST_EDGE, edge_of

    protocol = study.protocol()
    assert isinstance(protocol, MaskedDescent)
    edge = edge_of(protocol)
    if edge >= LEAST_EDGE:
        return ()
    also = ", and so does to protect records instead of parties" if study.task.unit == "party" else ""
    return (
        f"NOISE WILL WIN: all steps together can lead {edge:.2g} times as far as the noise does, and below {LEAST_EDGE:g} "
        f"little is learned; more rows or parties, a larger epsilon or a smaller model help{also}",
    )
