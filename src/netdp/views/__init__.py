"""What a set of observers sees: the transcript, and the views that accountants work on."""

from .gossip import GossipView
from .linear import LinearGaussianView, Noise, explicit_view
from .observers import curator_set, observer_set
from .sequence import SequenceView, exchanged
from .shuffled import ShuffledView, ShuffleTranscript
from .token import TokenTranscript, TokenView
from .transcript import Transcript, transcribe

__all__ = [
    "GossipView",
    "LinearGaussianView",
    "Noise",
    "SequenceView",
    "ShuffleTranscript",
    "ShuffledView",
    "TokenTranscript",
    "TokenView",
    "Transcript",
    "curator_set",
    "exchanged",
    "explicit_view",
    "observer_set",
    "transcribe",
]
