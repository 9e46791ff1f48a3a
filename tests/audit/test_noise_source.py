"""Where peers take their randomness from: their source is read, keys are traced, and draws are made with all else switched off."""

import ast
import contextlib
import hashlib
import inspect
import random
import secrets
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from netdp.audit.noise import ALLOWED, Use, foreseeable, only_cryptographic, peer_files, peers_are_cryptographic
from netdp.families.masked.descent import begun
from netdp.families.masked.peer import Learner, MaskedRunning
from netdp.families.token.peer_tokens import load_of
from netdp.peers import identity as identities
from netdp.peers import streams
from netdp.peers.descents import OwnSteps
from netdp.peers.identity import Identity
from netdp.peers.recovery import dealing
from netdp.peers.recovery.dealing import AttemptSecrets
from netdp.peers.recovery.group import ORDER
from netdp.peers.recovery.masks import masks

sys.path.append(str(Path(__file__).parents[1] / "peers"))

import matrix
import planted
import trials


def test_peers_draw_from_the_systems_generator_and_from_ciphers_only():
    found = peers_are_cryptographic()
    assert found.ok, found.words
    assert all(reason for reason in ALLOWED.values())


def test_peer_code_of_the_families_is_read_too():
    """Where peers draw noise, pads, coins and ways: none of it leaves the search when it moves."""
    files = peer_files()
    assert {f"families/{name}.py" for name in (
        "masked/peer", "masked/peer_descent", "gossip/peer", "gossip/peer_randomized", "gossip/diary", "token/peer_ring",
        "token/peer_walk", "token/peer_tokens", "shuffle/peer", "shuffle/peer_walk", "shuffle/reports",
    )} <= set(files)  # fmt: skip
    assert len([name for name in files if name.startswith("peers/")]) > 40


@pytest.mark.parametrize(
    "snippet",
    [
        "import numpy as np\nnoise = np.random.default_rng(7).normal(size=3)",
        "import numpy\nnumpy.random.seed(1)",
        "from numpy import random\nrandom.integers(3)",
        "from numpy.random import default_rng as make\nrng = make()",
        "import numpy as np\nchance = np.random\nchance.normal()",
        "import random\nrandom.Random(3).random()",
        "from random import randrange\nrandrange(5)",
        "from random import *\nrandrange(5)",
        "import time\nkey = str(time.time()).encode()",
        "from time import time_ns\nkey = time_ns()",
        "from datetime import datetime\nkey = datetime.now()",
        "import uuid\nnonce = uuid.uuid1().bytes",
        "import torch\nnoise = torch.randn(3)",
        "from netdp.mechanisms.discrete_gaussian import words_from\nwords = words_from(rng)",
        "report = mechanism.randomize(values, rng)",
        "report = self.made().randomize(values, rng)",
        "def draw(make):\n    return lambda: __import__('random').random()",
        "from importlib import import_module\nimport_module('ran' + 'dom')",
    ],
)
def test_what_can_be_foreseen_is_found_under_any_name(snippet):
    assert foreseeable(snippet), snippet
    assert not only_cryptographic({"kinds/masked.py": snippet}, {}).ok


@pytest.mark.parametrize(
    "snippet",
    [
        "import secrets\nkey = secrets.token_bytes(32)",
        "import os\nkey = os.urandom(32)",
        "import random\nrandom.SystemRandom().shuffle(ports)",
        "import uuid\nname = uuid.uuid4()",
        "from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey\nX25519PrivateKey.generate()",
        "random = with_share(share, size, words)\nrandom.sum()",
        "def wait(time):\n    return time.seconds",
    ],
)
def test_what_cannot_be_foreseen_is_not_called_so(snippet):
    assert foreseeable(snippet) == []


def test_a_numpy_generator_in_place_of_the_cipher_is_caught():
    """The very method that draws a party's noise, with one line changed."""
    sound = textwrap.dedent(inspect.getsource(MaskedRunning.draw))
    assert foreseeable(sound) == []
    cipher = 'noise_words(secret, where, integers.astype("<i8").tobytes())'
    assert cipher in sound
    changed = "import numpy as np\n" + sound.replace(cipher, "words_from(np.random.default_rng(attempt))")
    assert {use.what for use in foreseeable(changed)} == {"words_from", "numpy.random.default_rng"}
    assert not only_cryptographic({"kinds/masked.py": changed}, ALLOWED).ok


def test_an_allowance_that_nothing_uses_does_not_pass():
    text = {"status.py": "import time\nprint(time.time())"}
    allowed = {("status.py", "time.time"): "a date"}
    assert only_cryptographic(text, allowed).ok
    found = only_cryptographic(text, allowed | {("log.py", "time.time"): "a date"})
    assert "take it off the list" in found.words
    assert foreseeable(text["status.py"]) == [Use(2, "time.time")]


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_secret_of_an_identity_is_drawn_by_the_system():
    """`Identity.create`, read: what the four secrets are assigned from."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(Identity.create)))
    made = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = zip(target.elts, value.elts, strict=True) if isinstance(target, ast.Tuple) else [(target, value)]
            made |= {ast.unparse(name): value for name, value in pairs}
    arguments = [made.get(ast.unparse(one), one) for one in made["made"].args[2:]]
    assert [ast.unparse(one) for one in arguments] == [
        "Ed25519PrivateKey.generate()",
        "X25519PrivateKey.generate()",
        "secrets.token_bytes(32)",
        "ec.generate_private_key(ec.SECP256R1())",
    ]
    owners = [identities.Ed25519PrivateKey.__module__, identities.X25519PrivateKey.__module__, identities.ec.__name__]
    assert all(owner.startswith("cryptography.hazmat.") for owner in owners)
    assert identities.secrets is secrets


def test_the_noise_secret_is_what_the_system_gave(tmp_path, monkeypatch):
    given = hashlib.sha256(b"the system").digest()
    monkeypatch.setattr(identities.secrets, "token_bytes", lambda size: given[:size])
    made = Identity.create(tmp_path / "p", "p")
    assert made.noise_secret == Identity.load(tmp_path / "p").noise_secret == given


def test_two_fresh_identities_share_nothing(tmp_path):
    """No eight bytes of any secret of one stand anywhere in the other's; and their noise has nothing in common."""
    people = [Identity.create(tmp_path / name, "same-name") for name in ("one", "other")]
    pieces = []
    for one in people:
        keys = [
            secret for secret in planted.secrets_of(one).values() if isinstance(secret, bytes) and len(secret) == 32
        ]
        assert len(keys) >= 3
        pieces.append({key[at : at + 8] for key in keys for at in range(len(key) - 7)})
    assert not pieces[0] & pieces[1]
    where = streams.context(b"s" * 32, 1, (0, 1))
    drawn = [streams.noise_words(one.noise_secret, where, b"data")(1000) for one in people]
    assert not set(drawn[0].tolist()) & set(drawn[1].tolist())


# ── drawn with all else switched off ──────────────────────────────────────────────────────────────────────────────────


class Poisoned:
    """A module that must not be used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        raise AssertionError(f"{self._name}.{name} was used where a secret is drawn")


def poisoned(*_arguments, **_named):
    raise AssertionError("something foreseeable was used where a secret is drawn")


@contextlib.contextmanager
def nothing_foreseeable():
    """NumPy's generators, `random` and all clocks refuse to work."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(np, "random", Poisoned("numpy.random"))
        for name in ("random", "randrange", "randint", "getrandbits", "randbytes", "choice", "shuffle", "sample"):
            patched.setattr(random, name, poisoned)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
            patched.setattr(time, name, poisoned)
        yield


def dealt_at(desk, study, roster):
    """What a desk holds once all members of an attempt have dealt: secrets that follow from their numbers."""

    def made(u):
        parts = [hashlib.sha256(b"%d %d" % (u, k)).digest() for k in range(5)]
        s, b = (int.from_bytes(part, "little") % (ORDER - 1) + 1 for part in parts[:2])
        return AttemptSecrets(parts[2], s, b, parts[3], parts[4])

    people = {u: made(u) for u in roster}
    where = dealing.context(study.hash, 1, roster, study.running.threshold)
    keys = {u: dealing.advertised(one) for u, one in people.items()}
    dealt = {
        u: dealing.Dealing.read(
            dealing.deal(where, u, study.running.threshold, keys, one), u, study.running.threshold, keys
        )
        for u, one in people.items()
    }
    desk.attempt_secrets = lambda attempt: people[desk.me]
    desk.masks = lambda attempt, columns, modulus: masks(people[desk.me], desk.me, dealt, where, columns, modulus)


def test_secrets_of_an_attempt_come_from_the_system():
    with nothing_foreseeable():
        one, other = AttemptSecrets.fresh().to_bytes(), AttemptSecrets.fresh().to_bytes()
    assert not {one[at : at + 8] for at in range(len(one) - 7)} & {other[at : at + 8] for at in range(len(other) - 7)}


def drawn_by(row, number):
    """What party 1 draws in a study of one kind: everything that it later sends follows from it."""
    study, people, rows = trials.scene(row, number, False)
    desk = SimpleNamespace(me=1, study=study, identity=people[1], rows=rows[1], cards=dict(enumerate(study.cards)))
    roster = tuple(range(study.n))
    if study.running.threshold is not None:
        dealt_at(desk, study, roster)
    parts = list(study.running.draw(desk, 1, roster))
    if row == "masked-descent":
        running = study.running
        learner = Learner(desk, running.protocol(), running.evaluation, 1, roster, held_out=study.task.held_out)
        state = begun(learner.model.start())
        parts += [learner.drawn(t, state).numbers for t in (1, 2)]
    if row in ("gossip-descent", "walk-descent"):
        protocol = study.protocol()
        own = OwnSteps(protocol, study.task, desk.rows, desk.identity.noise_secret, study.hash, 1, roster)
        parts += [own.noise(own.start(), protocol.variance, t).tobytes() for t in (1, 2)]
    elif row.startswith("walk"):
        key, numbers = parts[1][:32], np.frombuffer(parts[1][32:], dtype="<i8").astype(np.int64)
        load = load_of(study.protocol())
        parts += [load.add(np.zeros(load.width, dtype=np.int64), numbers, key, 0, t).tobytes() for t in (0, 1)]
    return parts


@pytest.mark.parametrize("row", matrix.protocols())
def test_peers_draw_without_anything_foreseeable_and_the_same_again(row):
    before = drawn_by(row, 1)
    with nothing_foreseeable():
        again, other = drawn_by(row, 1), drawn_by(row, 2)
    if row.startswith("shuffle"):  # sealing is meant to differ every time: HPKE draws a key of its own
        key, mark = slice(0, 32), slice(-32, None)
        assert (again[1][key], again[1][mark]) == (before[1][key], before[1][mark])
        assert again[1] != before[1]
    else:
        assert again == before
    if row != "ring-histogram":  # one of four answers, which two studies may well have in common
        assert b"".join(other) != b"".join(again)


def test_the_poison_works():
    for use in (lambda: np.random.default_rng(0), lambda: random.random(), lambda: time.time()):
        with pytest.raises(AssertionError, match="where a secret is drawn"), nothing_foreseeable():
            use()
        use()
