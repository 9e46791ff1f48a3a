"""What is known of the randomizer that every report comes from, and so what a heap of its reports reveals.

    any ε₀-DP randomizer      taken for binary randomized response, the worst of all (docs/proofs/shuffle.md#shuffled-heap)
    values = k                k-ary randomized response: the uniform draws among the others' reports hide a symbol and a blank alike
    variation = η             any ε₀-DP randomizer whose laws are at most η apart in total variation (#variation)

Everything that is said of a shuffle goes through `Randomizer.heap` and `Randomizer.alone`: one place knows the mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from netdp.privacy.clones import Heap, of_response, of_variation
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import single_response

if TYPE_CHECKING:
    from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle


@dataclass(frozen=True)
class Randomizer:
    """A randomizer as a protocol states it.

    >>> Randomizer(1.0).heap(1999).epsilon(1e-6) > 2 * Randomizer(1.0, values=16).heap(1999).epsilon(1e-6)
    True
    """

    epsilon0: float
    delta0: float = 0.0
    values: int | None = None
    variation: float | None = None

    @classmethod
    def of(cls, protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> Randomizer:
        return cls(protocol.epsilon0, protocol.delta0, protocol.values, protocol.variation)

    @cached_property
    def makeup(self) -> dict[str, Any]:
        """p, q and the blanks of `Heap.of`; nothing where binary response is the worst."""
        if self.values is not None:
            return of_response(self.values, self.epsilon0)
        return {} if self.variation is None else of_variation(self.variation, self.epsilon0)

    def heap(self, others: int = 0, **more: Any) -> Heap:
        """One report shuffled uniformly among others; `more` are further keywords of `Heap.of`."""
        return Heap.of(others, self.epsilon0, delta0=self.delta0, **self.makeup, **more)

    @property
    def distance(self) -> float:
        """The total variation between two reports' laws, at most; reached by `worst`."""
        q = float(self.makeup.get("q", 1 / (1 + math.exp(-self.epsilon0))))
        return q * -math.expm1(-self.epsilon0)

    @property
    def worst(self) -> str:
        """The randomizer that is bounded, in words."""
        if self.values is not None:
            return f"randomized response over {self.values} values"
        return "binary randomized response" if not self.makeup else "the worst randomizer of this total variation"

    @property
    def alone(self) -> ProfileCurve:
        """The loss of a report by itself."""
        pure = single_response(self.epsilon0, 2 if self.values is None else self.values)
        if self.variation is not None and self.variation < float(pure.deltas[0]):
            # the profile is convex in e^ε: below the chord from the total variation to (ε₀, 0)
            return ProfileCurve(pure.epsilons, [self.variation, 0.0])
        return ProfileCurve(pure.epsilons, self.delta0 + (1 - self.delta0) * pure.deltas)

    @property
    def words(self) -> str:
        """The assumption on how reports are made."""
        if self.values is not None:
            return (
                f"every report comes from randomized response over {self.values} values with ε₀ = {self.epsilon0:g} (the own value "
                "kept, or each other one, all with the same probability), drawn once"
            )
        delta0 = f", δ₀ = {self.delta0:g}" if self.delta0 else ""
        near = "" if self.variation is None else (
            f" whose laws of a report are at most {self.variation:g} apart in total variation"
        )  # fmt: skip
        return f"every report comes from an ε₀ = {self.epsilon0:g}{delta0} randomizer{near}, drawn once"
