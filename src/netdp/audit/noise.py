"""The noise that protocols really draw: its law, the last digits of what is sent, and where its random words come from.

`noise_checks` draws from the samplers of a deployment, with the protocol's own parameters, and holds them against the laws that
are accounted for (`netdp.audit.samples`); how much noise there should be is computed from what the protocol states, in
fractions. `on_lattice` and `float_leak` ask whether the set of numbers that can come out depends on the data.
`only_cryptographic` reads source files: nothing that can be foreseen may be near a secret. Why a sound sampler passes:
docs/proofs/audit.md#noise-tests.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import netdp
from netdp.audit.bounds import measure
from netdp.audit.findings import Check
from netdp.audit.samples import DOUBT, SampleLaw, fits, gaussian_law, independent
from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, Words, words_from
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import whole
from netdp.privacy.curve import Curve
from netdp.protocols.base import Protocol
from netdp.protocols.table import Table

ZERO = 2000
"""Where the last digit of 0 is said to be: it has none."""

_FEWEST = 400


def on_lattice(values: npt.ArrayLike, step: float = 1.0, name: str = "numbers on the grid") -> Check:
    """Whether every number is a whole multiple of `step`, a power of two, exactly. Whole numbers count in steps already.

    >>> on_lattice([0.25, -1.5], 0.25).ok, on_lattice([0.25, 0.1], 0.25).ok, on_lattice(np.array([3, -1])).ok
    (True, False, True)
    """
    numbers = np.asarray(values)
    if math.frexp(step)[0] != 0.5:
        raise InvalidValue(
            f"step={step!r} is no power of two: doubles do not hold its multiples; give whole numbers of steps"
        )
    if numbers.dtype.kind in "iu":
        return Check(name, True, f"{numbers.size:,} whole numbers, in steps of {step:g}")
    if numbers.dtype.kind != "f":
        raise InvalidValue(f"values must be numbers, got an array of {numbers.dtype}")
    # dividing by a power of two is exact, and what overflows is off the grid of 64-bit numbers anyhow
    with np.errstate(over="ignore", invalid="ignore"):
        steps = numbers.astype(np.float64) / step
        off = ~(np.isfinite(steps) & (steps == np.rint(steps)))
    if off.any():
        odd = numbers[off].flat[0]
        return Check(
            name,
            False,
            f"{int(off.sum()):,} of {numbers.size:,} numbers, such as {odd!r}, are no multiples of {step:g}",
        )
    return Check(name, True, f"{numbers.size:,} numbers are whole multiples of {step:g}, exactly")


def last_digit(values: npt.ArrayLike) -> IntArray:
    """The place j of the last binary digit that is set: y·2⁻ʲ is odd; `ZERO` for 0.

    >>> last_digit([0.75, 12.0, 0.0, 2.0**-60]).tolist(), last_digit(np.array([12, -1])).tolist()
    ([-2, 2, 2000, -60], [2, 0])
    """
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iu":
        whole, place = numbers.astype(np.int64).ravel(), np.zeros(numbers.size, dtype=np.int64)
    elif numbers.dtype.kind == "f":
        if not np.isfinite(numbers).all():
            raise InvalidValue("a number that is not finite has no last digit; leave it out")
        part, exponent = np.frexp(numbers.astype(np.float64).ravel())
        whole, place = np.ldexp(part, 53).astype(np.int64), exponent.astype(np.int64) - 53
    else:
        raise InvalidValue(f"values must be numbers, got an array of {numbers.dtype}")
    lowest = (whole & -whole).astype(np.uint64).astype(np.float64)  # a power of two: exact
    with np.errstate(divide="ignore"):
        return np.where(whole == 0, ZERO, place + np.where(whole == 0, 0, np.frexp(lowest)[1] - 1))


def float_leak(
    samples0: npt.ArrayLike,
    samples1: npt.ArrayLike,
    *,
    curve: Curve | None = None,
    also: Callable[[Any], npt.ArrayLike] | None = None,
    doubt: float = DOUBT,
    name: str = "last digits tell nothing",
) -> Check:
    """Whether last digits tell two values apart: ok if they do not, or by no more than the curve allows.

    samples0, samples1 : what was sent with one value, and with the other; equally many independent numbers
    also : a further thing that the attack may look at: numbers → one whole number for each, such as "can come from value 0"

    >>> z = np.random.default_rng(0).laplace(size=(2, 20_000))
    >>> float_leak(z[0], 1 + z[1]).ok, float_leak(np.rint(z[0] * 1024), np.rint((1 + z[1]) * 1024)).ok
    (False, True)
    """
    zero, one = (np.asarray(given).ravel() for given in (samples0, samples1))
    if zero.shape != one.shape or len(zero) < _FEWEST:
        raise InvalidValue(f"{zero.size} and {one.size} numbers: give equally many of both, {_FEWEST} or more")
    highest = ZERO
    if curve is None:  # the noise of either; half of its deviation is the largest modulus that is looked at
        spread = max(float(np.std(part.astype(np.float64))) for part in (zero, one))
        highest = math.frexp(spread)[1] - 2 if spread else -ZERO
    features = [tuple(np.minimum(last_digit(part), highest) for part in (zero, one))]
    if also is not None:
        features.append(tuple(np.asarray(also(part)).astype(np.int64).ravel() for part in (zero, one)))
    for looked_at in features:
        half = len(zero) // 2
        score = _learned(looked_at[0][:half], looked_at[1][:half])
        without, within = (score(part[half:]) for part in looked_at)
        measured = measure(without, within, delta=0.0, confidence=1 - doubt / len(features))
        leaks = measured.by_counts > 0 or measured.mu > 0 if curve is None else measured.refutes(curve)
        if leaks:
            best = max(measured.points, key=lambda point: point.epsilon(0.0))
            said = (
                f"an event of the last digits has probability {best.true:.3g} or more with one value and {best.false:.3g} or less "
                f"with the other: ε is at least {measured.by_counts:.3g} at δ = 0"
            )
            return Check(name, False, said)
    allowed = "at all" if curve is None else "beyond what is promised"
    return Check(
        name, True, f"2 × {len(zero):,} numbers: no place of the last digit tells the two values apart {allowed}"
    )


def _learned(without: IntArray, within: IntArray) -> Callable[[IntArray], Any]:
    """Scores by how much more often something was seen with the second value; 0 for what was never seen."""
    keys = np.unique(np.concatenate([without, within]))
    a, b = (np.bincount(np.searchsorted(keys, part), minlength=len(keys)) + 0.5 for part in (without, within))
    logs = np.log(b / a)

    def score(part: IntArray) -> Any:
        place = np.minimum(np.searchsorted(keys, part), len(keys) - 1)
        return np.where(keys[place] == part, logs[place], 0.0)

    return score


_MODULES = ("random", "numpy.random", "time", "uuid", "torch.random")

_MEMBERS = (
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today", "torch.rand",
    "torch.randn", "torch.randint", "torch.randperm", "torch.manual_seed",
)  # fmt: skip

_SOUND = ("random.SystemRandom", "uuid.uuid4", "uuid.UUID")

_OURS = ("words_from", "randomize", "default_rng", "RandomState", "SeedSequence")

_BY_NAME = ("__import__", "importlib.import_module", "exec", "eval")

_NAMED = re.compile(rf"\b(random|time|uuid|datetime|torch|importlib|{'|'.join((*_OURS, *_BY_NAME))})\b")

_WAITING = "how long to wait, or how long something took; shown to people, or compared with a deadline"

_DATES = "a date that people read, or that a certificate is checked against"

_CANARIES = "made-up data of an audit run, which are to be found out; its keys, noise and pads are drawn as always"

ALLOWED: dict[tuple[str, str], str] = {
    ("families/masked/peer.py", "time.perf_counter"): "how long the loss on own rows took, for the owner's eyes",
    ("peers/doctor.py", "datetime.datetime.now"): _DATES,
    ("peers/doctor.py", "time.monotonic"): _WAITING,
    ("peers/doctor.py", "time.perf_counter"): _WAITING,
    ("peers/doctor.py", "time.time"): "how far two clocks are apart",
    ("peers/events.py", "datetime.datetime.now"): _DATES,
    ("peers/identity.py", "datetime.datetime.now"): "how long a certificate is good; keys are drawn by cryptography",
    ("peers/launch.py", "time.monotonic"): _WAITING,
    ("peers/launch.py", "time.sleep"): _WAITING,
    ("peers/ledger/database.py", "time.sleep"): _WAITING,
    ("peers/ledger/entries.py", "datetime.datetime.now"): _DATES,
    ("peers/metrics.py", "time.monotonic"): _WAITING,
    ("peers/recordings/canaries.py", "numpy.random.Generator"): _CANARIES,
    ("peers/recordings/canaries.py", "numpy.random.default_rng"): _CANARIES,
    (
        "peers/runs.py",
        "time.monotonic_ns",
    ): "names a file apart from others of the same process, in a folder of the user's",
    ("peers/runs.py", "time.time"): _DATES,
    ("peers/status.py", "time.monotonic"): _WAITING,
    ("peers/status.py", "time.time"): _DATES,
    ("peers/trace.py", "time.time"): _DATES,
    ("peers/transport/base.py", "time.monotonic"): _WAITING,
    ("peers/transport/grpc.py", "time.time"): "how far two clocks are apart",
}
"""(file under netdp, what it names) → why that is no secret."""


@dataclass(frozen=True, order=True)
class Use:
    """A place that names something foreseeable."""

    line: int
    what: str


def foreseeable(source: str) -> list[Use]:
    """Every place of a program that names a source of numbers that can be foreseen, under whatever name it was imported.

    The modules `random` (but for `SystemRandom`), `numpy.random`, `time`, `uuid` (but for `uuid4`), the present moment of
    `datetime`, torch's generators, this project's own samplers for simulation (`words_from`, `.randomize`), and imports by a name
    that is only known when the program runs, which cannot be read. The source is read as a syntax tree.

    >>> foreseeable("import numpy as np\\nkey = np.random.default_rng(0).bytes(32)")
    [Use(line=2, what='numpy.random.default_rng')]
    >>> foreseeable("import secrets\\nkey = secrets.token_bytes(32)")
    []
    """
    if not _NAMED.search(source):  # nothing of the kind stands anywhere in it: no need to read it
        return []
    tree = ast.parse(source)
    reader = _Reader(dict(_imported(tree)))
    reader.visit(tree)
    return sorted({*reader.found, *_everything(tree)})


def only_cryptographic(
    files: Mapping[str, str], allowed: Mapping[tuple[str, str], str], name: str = "the source of randomness"
) -> Check:
    """Whether these files (name → text) name nothing foreseeable but what is allowed, with a reason.

    An entry of the list that nothing uses any more does not pass either: then its reason is about something else.
    """
    uses = [(file, use) for file, text in sorted(files.items()) for use in foreseeable(text)]
    wrong = [(file, use) for file, use in uses if (file, use.what) not in allowed]
    if wrong:
        file, use = wrong[0]
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Check(name, False, f"{file}, line {use.line}, uses {use.what}, which can be foreseen{more}")
    stale = sorted(set(allowed) - {(file, use.what) for file, use in uses})
    if stale:
        return Check(name, False, f"{stale[0][0]} is allowed {stale[0][1]} and does not use it; take it off the list")
    return Check(
        name, True, f"{len(files)} files draw from the system's generator and from ciphers only; clocks and the like are named in "
        f"{len(allowed)} places, none of them near a secret",
    )  # fmt: skip


def peers_are_cryptographic() -> Check:
    """The same of all that peers run, as it is installed here: `netdp.peers` and its part of the families.

    What a syntax tree cannot show, that keys really come from the operating system, is tested by drawing with all else switched
    off (tests/audit/test_noise_source.py).
    """
    return only_cryptographic(peer_files(), ALLOWED)


def peer_files() -> dict[str, str]:
    """What peers run: `netdp.peers`, and of the families whatever is built on it or named as theirs."""
    root = Path(netdp.__file__).parent
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}
    theirs = re.compile(r"families/\w+/(peer\w*|reports|diary|logs|recordings)\.py")
    return {
        name: text
        for name, text in texts.items()
        if name.startswith("peers/")
        or (name.startswith("families/") and (theirs.fullmatch(name) or "from netdp.peers" in text))
    }


class _Reader(ast.NodeVisitor):
    """Looks at every name, and at every chain of names a.b.c as a whole."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names, self.found = names, list[Use]()

    def visit_Name(self, node: ast.Name) -> None:
        self._judge(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (dotted := _dotted(node)) is not None:
            self._judge(node, dotted)
            return
        if node.attr in _OURS:
            self.found.append(Use(node.lineno, node.attr))
        self.generic_visit(node)

    def _judge(self, node: ast.expr, dotted: str) -> None:
        head, dot, rest = dotted.partition(".")
        full = self._names.get(head, head) + dot + rest
        known = head in self._names or full in _BY_NAME  # else it is a variable that happens to be called so
        if (known and _is_foreseeable(full)) or full.rpartition(".")[2] in _OURS:
            self.found.append(Use(node.lineno, full))


def _is_foreseeable(full: str) -> bool:
    if any(full == sound or full.startswith(sound + ".") for sound in _SOUND):
        return False
    # a module by itself may be handed on under another name
    return full in (*_BY_NAME, *_MEMBERS, *_MODULES) or any(full.startswith(module + ".") for module in _MODULES)


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name here, full name) of everything imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{'.' * node.level}{node.module}.{alias.name}"


def _everything(tree: ast.AST) -> Iterator[Use]:
    """Imports of all names of a module, which hide what is used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            module = node.module or ""
            if f"{module}." in {f"{one}." for one in _MODULES} or module in ("numpy", "datetime", "torch"):
                yield Use(node.lineno, f"{module}.*")


def _dotted(node: ast.expr) -> str | None:
    """a.b.c, if that is all it is."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inside := _dotted(node.value)) is not None:
        return f"{inside}.{node.attr}"
    return None


_ANSWERS = 10_000
"""Randomized answers are drawn one by one, so there are fewer of them."""

_LARGEST = 20.0
"""No report of peers has a larger ε₀, and all are pure."""

_FINE = 16
"""Deviation, in steps, from which on a number has digits below its noise."""


@dataclass(frozen=True)
class Sampler:
    """One noise of a protocol.

    name    which one, for people
    law     what is stated and accounted for
    draw    (how many, words) → so many draws, by what draws them in a deployment
    far     how many steps apart two values can be that it hides; 0 where it is no noise that is added
    most    draws, at most, where each takes long
    """

    name: str
    law: SampleLaw
    draw: Callable[[int, Words], IntArray]
    far: int = 0
    most: int | None = None


noises = Table("the noise", "draws no noise in whole numbers", part="attack")
"""`noises(protocol)`: a list of `Sampler`; empty for one in real numbers, and for reports that peers do not send."""


def noise_checks(
    protocol: Protocol, seed: int = 0, draws: int = 200_000, *, words: Words | None = None, doubt: float = DOUBT
) -> list[Check]:
    """Whether every noise that a protocol draws on a grid is what it claims to be; the same seed gives the same checks.

    draws   of all its noises together
    words   random 64-bit words; by default those of a NumPy generator with this seed
    doubt   so probable it is, at most, that sound samplers do not pass, all checks together

    >>> from netdp import Gossip, MaskedSum, graphs
    >>> [check.ok for check in noise_checks(MaskedSum(graphs.ring(8), sigma=2.0), draws=20_000)]
    [True, True, True]
    >>> noise_checks(Gossip(graphs.ring(8), rounds=3, sigma=2.0))[0].words
    'Gossip, as it is stated, has no grid: its noise is simulated in floating point, and no deployed sampler is involved'
    """
    seed, draws = whole("seed", seed), whole("draws", draws, 1000)
    found: list[Sampler] = noises(protocol) if noises.handles(protocol) else []
    if not found:
        said = "has no grid: its noise is simulated in floating point, and no deployed sampler is involved"
        return [Check("the noise itself", True, f"{type(protocol).__name__}, as it is stated, {said}")]
    source = words_from(np.random.default_rng(np.random.SeedSequence([seed, 15]))) if words is None else words
    out: list[Check] = []
    for noise in found:
        out += _checked(noise, min(noise.most or draws, draws // len(found)), source, doubt / len(found) / 3)
    return out


def _checked(noise: Sampler, draws: int, words: Words, doubt: float) -> list[Check]:
    sample = np.asarray(noise.draw(draws, words))
    if not (kind := on_lattice(sample, name=f"{noise.name}: whole numbers")).ok or sample.dtype.kind not in "iu":
        words_of_it = kind.words if not kind.ok else f"draws are {sample.dtype}, not whole numbers"
        return [Check(kind.name, False, words_of_it)]
    checks = [
        fits(sample, noise.law, doubt, f"{noise.name}: the law"),
        independent(sample, noise.law, doubt, f"{noise.name}: one draw and the next"),
    ]
    if noise.far and noise.law.deviation >= _FINE:
        half = len(sample) // 2  # what is sent with one value, and with one as far from it as may be
        name = f"{noise.name}: last digits"
        checks.append(float_leak(sample[:half], sample[half : 2 * half] + noise.far, doubt=doubt, name=name))
    return checks


def _ahead(words: Words) -> Words:
    """The same words, asked for in blocks: whoever asks for one at a time would wait for each."""
    block = np.empty(0, dtype=np.uint64)

    def some(size: int) -> Any:
        nonlocal block
        if size > len(block):
            block = np.concatenate([block, words(max(size, 1 << 12))])
        taken, block = block[:size], block[size:]
        return taken

    return some


# ── which protocol draws what ─────────────────────────────────────────────────────────────────────────────────────────


def _steps(square: Fraction, grid: float) -> int:
    """A variance in squared steps, rounded up: what must be drawn at least, and is drawn."""
    return math.ceil(square / Fraction(grid) ** 2)


def _gaussian(name: str, stated: int, drawn: int, protocol: Any, sampler: Any = DiscreteGaussian) -> list[Sampler]:
    """Noise of the parameter `stated`, drawn with the parameter that the protocol hands to its sampler."""
    if not stated:
        return []
    far = max(1, math.ceil(protocol.sensitivity / protocol.step))
    return [Sampler(name, gaussian_law(stated), lambda size, words: sampler(drawn).sample((size,), words), far)]
