"""What a set of observers sees: the transcript, and the views that accountants work on."""

from .gossip import GossipView
from .linear import LinearGaussianView, Noise, explicit_view
from .observers import observer_set
from .sequence import SequenceView, exchanged
from .transcript import Transcript, transcribe

__all__ = [
    "GossipView",
    "LinearGaussianView",
    "Noise",
    "SequenceView",
    "Transcript",
    "exchanged",
    "explicit_view",
    "observer_set",
    "transcribe",
]
