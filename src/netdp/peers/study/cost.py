"""What a training will cost, said before it starts: rounds, bytes, memory, time; and whether it will be worth it.

Bytes, memory and seconds are those of `netdp.utility.descent_cost`, on a network of 100 Mbit/s; every round waits for the
slowest. Whether it will be worth it: `netdp.planning.outlook`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netdp.protocols import MaskedDescent

from .training import MANY

if TYPE_CHECKING:
    from netdp.planning import Outlook

    from .study import Study

_ROUND = 0.05  # seconds: messages there and back, durable writes
_MUCH = 2e9  # bytes that a party sends in all: worth a loud word
_LONG = 6 * 3600.0


def cost_of(study: Study) -> dict[str, Any]:
    """Rounds, bytes that a party sends (the mean, and the most), bytes of memory and seconds, as plain values."""
    from netdp.utility.descent_cost import expected_cost

    protocol = study.protocol()
    assert isinstance(protocol, MaskedDescent)
    found, rounds = expected_cost(protocol, latency=_ROUND), study.running.most_steps()
    return {
        "rounds": rounds,
        "bytes_per_round": found.mean_bytes // found.iterations,
        "bytes": found.mean_bytes,
        "most_bytes": found.party_bytes,
        "memory": found.memory_bytes,
        "seconds": found.seconds + (rounds - found.iterations) * found.rounds / found.iterations * _ROUND,
    }


def cost_lines(study: Study) -> list[str]:
    """The same in words; a model that is large, or a training that is long, loudly."""
    from netdp.utility.descent_cost import duration, size

    task, cost = study.task, cost_of(study)
    more = f" (the one in the middle of the network up to {size(cost['most_bytes'])})"
    lines = [
        f"{cost['rounds']:,} rounds; in each every party sends about {size(cost['bytes_per_round'])}, {size(cost['bytes'])} in "
        f"all{more if cost['most_bytes'] > 1.5 * cost['bytes'] else ''}, and holds {size(cost['memory'])} of numbers in memory. "
        f"That takes about {duration(cost['seconds'])} on a network of 100 Mbit/s (an estimate; gradients of a model that is "
        "code come on top); every round waits for the slowest."
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
    return tuple(text.replace("noise will win", "NOISE WILL WIN", 1) for text in outlook_of(study).warnings)


def outlook_of(study: Study) -> Outlook:
    """What may be expected of it, as `netdp.planning.outlook` says of any training."""
    from netdp.planning import outlook

    protocol = study.protocol()
    assert isinstance(protocol, MaskedDescent)
    return outlook(protocol, study.task.max_records)
