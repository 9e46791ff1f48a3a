"""Which accountant handles which protocol: modules register here, `account` asks here.

`certified(protocol, observers, …)` and `published(protocol, observers, …)` dispatch on the type of the protocol; a
protocol that nobody registered is refused.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from netdp.errors import Unsupported
from netdp.privacy import Guarantee


@singledispatch
def certified(protocol: Any, observers: tuple[Any, ...], **options: Any) -> Guarantee:
    """The certified loss of every party against the observers."""
    raise Unsupported(f"there is no certified accountant for {type(protocol).__name__}")


@singledispatch
def published(protocol: Any, observers: tuple[Any, ...], **options: Any) -> Guarantee:
    """The loss by the formula of a paper, as printed."""
    raise Unsupported(f"no published formula is known for {type(protocol).__name__}; ask for method='certified'")
