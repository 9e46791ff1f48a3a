"""The least noise, and the best protocol, for a privacy target. The only room that searches.

calibrate             the noise of one protocol for a target
target, audience      what is asked for, and against whom
policy                limits per pair, from a file
training              how to train when nobody has seen the data; training_rules, _before, _outlook: its parts
links                 how many random links to lay over a graph, and what they buy
gossip/ token/ shuffle/ masked/   how each family is planned
"""

from .base import Option, Plan
from .calibrate import calibrate
from .gossip.plan import GossipPlan, plan
from .links import LinkAdvice, advise_links
from .masked.plan import MaskedPlan, plan_masked
from .policy import Policy
from .shuffle.faults import FaultyPlan, hops_given, plan_with_faults
from .shuffle.plan import ShufflePlan, calibrate_epsilon0, plan_rounds
from .shuffle.relay import RelayPlan, plan_relayed
from .token.on_graphs import plan_token_on
from .token.plan import TokenPlan, plan_token
from .training import TrainingPlan, plan_training
from .training_outlook import NoiseWarning, Outlook, outlook

__all__ = [
    "FaultyPlan",
    "GossipPlan",
    "LinkAdvice",
    "MaskedPlan",
    "NoiseWarning",
    "Option",
    "Outlook",
    "Plan",
    "Policy",
    "RelayPlan",
    "ShufflePlan",
    "TokenPlan",
    "TrainingPlan",
    "advise_links",
    "calibrate",
    "calibrate_epsilon0",
    "hops_given",
    "outlook",
    "plan",
    "plan_masked",
    "plan_relayed",
    "plan_rounds",
    "plan_token",
    "plan_token_on",
    "plan_training",
    "plan_with_faults",
]
