"""Privacy as mathematics: neighbouring inputs, curves, conversions, and the guarantee that states them.

Nothing here knows about graphs or protocols. Numbers err on the safe side: ε and δ are rounded up.

>>> from netdp.privacy import Claim, GaussianCurve, Guarantee
>>> loss = Guarantee(GaussianCurve([0.5, 1.0]), observers=[2], claim=Claim.EXACT)
>>> print(f"{loss.worst_epsilon(delta=1e-6):.4f}")
4.8866
"""

from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve, compose, everywhere
from netdp.privacy.filters import Filter, Odometer
from netdp.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_tradeoff
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee, Unit, weakest
from netdp.privacy.observers import Found, Observers, entry
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.renyi import DEFAULT_ORDERS, RenyiCurve

__all__ = [
    "DEFAULT_ORDERS",
    "Adjacency",
    "Claim",
    "Curve",
    "Filter",
    "Found",
    "GaussianCurve",
    "Guarantee",
    "Observers",
    "Odometer",
    "ProfileCurve",
    "RenyiCurve",
    "SharedCurve",
    "Unit",
    "compose",
    "entry",
    "everywhere",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_tradeoff",
    "weakest",
]
