"""What a set of observers sees: the transcript, and the views that accountants work on."""

from .exchanges import ExchangeLogs, ExchangeView
from .gossip import GossipView
from .linear import LinearGaussianView, LinearProtocol, Noise, Seen, explicit_view
from .observers import observer_set, who_looks
from .realised import realised
from .sequence import SequenceView, exchanged
from .shuffled import ShuffledView, ShuffleTranscript
from .states import MomentumView, PushView
from .token import TokenTranscript, TokenView
from .transcript import Transcript, transcribe

__all__ = [
    "ExchangeLogs",
    "ExchangeView",
    "GossipView",
    "LinearGaussianView",
    "LinearProtocol",
    "MomentumView",
    "Noise",
    "PushView",
    "Seen",
    "SequenceView",
    "ShuffleTranscript",
    "ShuffledView",
    "TokenTranscript",
    "TokenView",
    "Transcript",
    "exchanged",
    "explicit_view",
    "observer_set",
    "realised",
    "transcribe",
    "who_looks",
]
