"""From a protocol or a view to a guarantee: certified accountants here, the papers' formulas in `published`.

The front door         front, registry, baselines, walk_baselines, statements
Gossip, exactly        gossip, krylov, chain, sequences, linear_gaussian; wide, modular (integers where floats cannot tell)
Gossip, other          iteration (learning), secret_graph, utility, utility_varying, spectral_error
Tokens, known paths    token, ring, walk_losses
Tokens, secret paths   walk; sampled (a step, a block), stretches (how a walk is cut), events (composition), graph_walk
Shuffling              shuffling; clones, heap_counts (a shuffled heap), separation, spectral_bound (how far a walk has mixed)
Planning               calibrate, plan, certify, target, audience, policy, search, symmetry, advise; calibrate_descent;
                       calibrate_walk, token_plan; plan_shuffle
"""

from . import (  # noqa: F401  register what they handle
    graph_walk,
    iteration,
    ring,
    sequences,
    shuffling,
    token,
    utility_varying,
    walk,
    walk_baselines,
)
from .baselines import local_dp, trusted_curator
from .calibrate import calibrate
from .front import METHODS, account, pairwise
from .plan import Plan, plan
from .plan_shuffle import ShufflePlan, calibrate_epsilon0, plan_rounds
from .policy import Policy
from .published import walk_descent, walks  # noqa: F401  register what they handle
from .token_plan import TokenPlan, plan_token
from .utility import ExpectedError, expected_error

__all__ = [
    "METHODS",
    "ExpectedError",
    "Plan",
    "Policy",
    "ShufflePlan",
    "TokenPlan",
    "account",
    "calibrate",
    "calibrate_epsilon0",
    "expected_error",
    "local_dp",
    "pairwise",
    "plan",
    "plan_rounds",
    "plan_token",
    "trusted_curator",
]
