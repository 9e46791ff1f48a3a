"""Where deployed code takes its randomness from: nothing that can be foreseen may be near a secret.

A sampler is as good as its words. Peers must draw from the operating system's generator (`secrets`, `os.urandom`, the key
generation of `cryptography`) or from streams whose keys come from there (`netdp.peers.streams`). NumPy's generators and
`random.Random` can be foreseen from what they have put out, and a clock can be guessed.

**`foreseeable`** reads a source file as a syntax tree and lists every place that names such a thing, under whatever name it was
imported: the modules `random` (but for `SystemRandom`), `numpy.random`, `time`, `uuid` (but for `uuid4`), the present moment of
`datetime`, torch's generators, this project's own samplers for simulation (`words_from`, `.randomize`), and imports by a name
that is only known when the program runs, which cannot be read.

**`only_cryptographic`** compares that with a list of what is allowed, each with its reason. A use that is not on the list does
not pass, nor does an entry of the list that nothing uses any more: then the reason is about something else.

`netdp.peers` as it is installed here: `peers_are_cryptographic`. What a syntax tree cannot show, that keys really come from
there, is tested by drawing with all else switched off (tests/audit/test_noise_source.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import netdp

from .findings import Check

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
    ("audits/canaries.py", "numpy.random.Generator"): _CANARIES,
    ("audits/canaries.py", "numpy.random.default_rng"): _CANARIES,
    ("doctor.py", "time.perf_counter"): _WAITING,
    ("doctor.py", "datetime.datetime.now"): _DATES,
    ("followed.py", "time.monotonic"): _WAITING,
    (
        "identity.py",
        "datetime.datetime.now",
    ): "from when until when a certificate is good; keys are drawn by cryptography",
    (
        "learner.py",
        "time.perf_counter",
    ): "how long the loss on own rows took, for the owner's eyes; no part of what is drawn",
    ("ledger/database.py", "time.sleep"): _WAITING,
    ("ledger/entries.py", "datetime.datetime.now"): _DATES,
    ("log.py", "datetime.datetime.now"): _DATES,
    ("metrics.py", "time.monotonic"): _WAITING,
    ("reach.py", "time.monotonic"): _WAITING,
    ("reach.py", "time.time"): "how far two clocks are apart",
    ("status.py", "time.time"): _DATES,
    ("trace.py", "time.time"): _DATES,
    ("transport/base.py", "time.monotonic"): _WAITING,
    ("transport/grpc.py", "time.time"): "how far two clocks are apart",
    (
        "under_way.py",
        "time.monotonic_ns",
    ): "names a file apart from others of the same process, in a folder of the user's own",
    ("under_way.py", "time.time"): _DATES,
    ("up.py", "time.monotonic"): _WAITING,
    ("up.py", "time.sleep"): _WAITING,
}
"""(file under netdp/peers, what it names) → why that is no secret."""


@dataclass(frozen=True, order=True)
class Use:
    """A place that names something foreseeable."""

    line: int
    what: str


def foreseeable(source: str) -> list[Use]:
    """Every place of a program that names a source of numbers that can be foreseen.

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
    """Whether these files (name → text) name nothing foreseeable but what is allowed, with a reason."""
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
    """The same of `netdp.peers` as it is installed here."""
    folder = Path(netdp.__file__).parent / "peers"
    files = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
    return only_cryptographic(files, ALLOWED)


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
