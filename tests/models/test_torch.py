"""Torch modules: gradients against plain autograd, records kept apart, what is refused.

Proof: docs/proofs/learning.md#record-gradients.
"""

import math
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
from torch import nn  # noqa: E402

from netdp.errors import InvalidValue, Unsupported  # noqa: E402
from netdp.models import clipped_sum, code, from_torch, whole_sum  # noqa: E402
from netdp.models.torch_layers import seeded  # noqa: E402


class Cells(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self, kind):
        super().__init__()
        self.cells, self.out = kind(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.cells(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.norm, self.out = (
            nn.MultiheadAttention(4, 2, batch_first=True),
            nn.LayerNorm(4),
            nn.Linear(4, 3),
        )

    def forward(self, x):
        return self.out(self.norm(x + self.heads(x, x, x, need_weights=False)[0]).mean(1))


class Words(nn.Module):
    def __init__(self, sparse=False):
        super().__init__()
        self.words, self.out = nn.Embedding(10, 4, sparse=sparse), nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.words(x).mean(1))


class Tied(nn.Module):
    """One matrix under two names, a buffer, a frozen parameter, and a parameter that is never used."""

    def __init__(self):
        super().__init__()
        self.there = nn.Linear(4, 4, bias=False)
        self.back = nn.Linear(4, 4, bias=False)
        self.back.weight = self.there.weight
        self.register_buffer("shift", torch.full((4,), 0.25))
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.back(torch.tanh(self.there(x) + self.shift)) * self.frozen


class Writes(nn.Module):
    """Writes a record into a new tensor: vmap cannot."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(Into(), nn.Linear(4, 3))

    def forward(self, x):
        return self.inner(x)


class Into(nn.Module):
    def forward(self, x):
        new = torch.zeros(1, 4)
        new[:, :] = x
        return new


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2), nn.GroupNorm(2, 4), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    )


SHAPES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), (4,), {}),
    "double": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double(), (4,), {}),
    "cnn": (cnn, (1, 10, 10), {}),
    "lstm": (lambda: Cells(nn.LSTM), (5, 4), {}),
    "attention": (Attention, (5, 4), {}),
    "words": (Words, (6,), {"whole_inputs": True}),
    "tied": (lambda: nn.Sequential(Tied(), nn.Linear(4, 3)), (4,), {}),
}
ALONE = {"gru": (lambda: Cells(nn.GRU), (5, 4), {}), "writes": (Writes, (4,), {})}
ALONE["sparse"] = (lambda: Words(sparse=True), (6,), {"whole_inputs": True})


def records(shape, options, m=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 10, (m, *shape)).astype(float) if options else rng.standard_normal((m, *shape))
    return X, rng.integers(0, 3, m).astype(float)


def gradients(model, theta, X, y):
    return np.concatenate([np.zeros((0, model.size)), *model.gradients(theta, X, y)])


def by_hand(make, seed, X, y, whole):
    """Every record's gradient, by backward() on a module of one's own."""
    torch.manual_seed(seed)
    module = make()
    number = next(module.parameters()).dtype
    rows = []
    for x, label in zip(X, y, strict=True):
        module.zero_grad()
        output = module(torch.tensor(x[None], dtype=torch.int64 if whole else number))
        nn.functional.cross_entropy(output, torch.tensor([int(label)])).backward()
        learned = [p for p in module.parameters() if p.requires_grad]
        flat = [torch.zeros_like(p) if p.grad is None else p.grad.to_dense() for p in learned]
        rows.append(np.concatenate([g.numpy().ravel() for g in flat]))
    return np.array(rows)


@pytest.mark.parametrize("which", [*SHAPES, *ALONE])
def test_gradients_are_autograds_and_records_stand_alone(which):
    make, shape, options = {**SHAPES, **ALONE}[which]
    X, y = records(shape, options)
    model = from_torch(make, "cross_entropy", classes=3, shape=shape, chunk=1, seed=5, **options)
    theta = model.start()
    got = gradients(model, theta, X, y)
    np.testing.assert_allclose(got, by_hand(make, 5, X, y, bool(options)), rtol=1e-4, atol=1e-6)
    assert model.exact
    assert model.assumptions == ()
    # company, order, place in memory: the same bits
    assert (gradients(model, theta, X[::-1], y[::-1])[::-1] == got).all()
    assert (gradients(model, theta, X[3:9], y[3:9]) == got[3:9]).all()


@pytest.mark.parametrize("which", SHAPES)
def test_chunks_agree_with_records_alone(which):
    make, shape, options = SHAPES[which]
    X, y = records(shape, options)
    model = from_torch(make, "cross_entropy", classes=3, shape=shape, chunk=8, **options)
    alone = from_torch(make, "cross_entropy", classes=3, shape=shape, chunk=1, **options)
    theta = model.start()
    assert [len(block) for block in model.gradients(theta, X, y)] == [8, 8, 4]
    np.testing.assert_allclose(gradients(model, theta, X, y), gradients(alone, theta, X, y), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(model.losses(theta, X, y), alone.losses(theta, X, y), rtol=1e-4)
    np.testing.assert_allclose(model.scores(theta, X), alone.scores(theta, X), rtol=1e-4, atol=1e-6)
    assert not model.exact
    assert "round a record alike whatever other records" in model.assumptions[0]
    assert "chunk=8" in model.assumptions[0]


@pytest.mark.parametrize("which", ["gru", "writes"])
def test_what_vmap_cannot_do_is_refused_by_layer_with_the_way_out(which):
    make, shape, _ = ALONE[which]
    layer = {"gru": "'cells' (GRU)", "writes": "'inner.0' (Into)"}[which]
    with pytest.raises(Unsupported, match=r"vmap cannot run .* with chunk=1") as refused:
        from_torch(make, "cross_entropy", classes=3, shape=shape)
    assert layer in str(refused.value)


@pytest.mark.parametrize("chunk", [1, 64])
@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (nn.BatchNorm1d(4), r"BatchNorm1d, which mixes the records of a batch; use nn.GroupNorm\(4, 4\) instead"),
        (nn.BatchNorm1d(4, track_running_stats=False), "mixes the records"),
        (nn.Dropout(0.5), "Dropout that drops numbers at random; set p=0, or call .eval"),
        (nn.MultiheadAttention(4, 2, dropout=0.1), "MultiheadAttention that drops"),
        (nn.LSTM(4, 4, num_layers=2, dropout=0.1), "LSTM that drops"),
        (nn.InstanceNorm1d(4, track_running_stats=True), "give track_running_stats=False"),
    ],
)
def test_layers_that_mix_or_draw_are_refused_by_name(layer, said, chunk):
    with pytest.raises(Unsupported, match=said) as refused:
        from_torch(nn.Sequential(layer, nn.Linear(4, 3)), "cross_entropy", classes=3, chunk=chunk)
    assert "'0'" in str(refused.value)


def test_frozen_statistics_and_switched_off_dropout_are_fine():
    module = nn.Sequential(nn.BatchNorm1d(4).eval(), nn.Dropout(0.5).eval(), nn.Dropout(0.0), nn.Linear(4, 3))
    for chunk in (1, 8):
        model = from_torch(module, "cross_entropy", classes=3, shape=(4,), chunk=chunk)
        assert model.size == 8 + 15


class Noisy(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.rand(())


class Counts(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1.0
        return super().forward(x)


class Shrinks(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight *= 0.5
        return super().forward(x)


class Remembers(nn.Linear):
    last = 0.0

    def forward(self, x):
        out = super().forward(x) + self.last * x.sum()
        self.last = float(x.detach().sum())
        return out


class Averages(nn.Linear):
    """A buffer that is not written to, but replaced."""

    def __init__(self):
        super().__init__(4, 3)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach()[0]
        return super().forward(x - self.mean)


class Lists(nn.Linear):
    """Remembers where no comparison of attributes sees it."""

    def __init__(self):
        super().__init__(4, 3)
        self.seen = []

    def forward(self, x):
        self.seen.append(x.detach())
        return super().forward(x) * sum(float(old.sum()) for old in self.seen)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Noisy(4, 3), "draws random numbers"),
        (Counts, "the layer 'Counts' changes its 'seen' when"),
        (lambda: Shrinks(4, 3), "the layer 'Shrinks' changes its 'weight' when"),
        (lambda: Remembers(4, 3), "the layer 'Remembers' changes its 'last' when"),
        (Averages, "the layer 'Averages' changes its 'mean' when"),
        (Lists, "it remembers; keep nothing between two calls"),
    ],
)
def test_modules_that_draw_change_or_remember_are_refused(make, said):
    before = torch.get_rng_state()
    with pytest.raises(Unsupported, match=said):
        from_torch(make, "cross_entropy", classes=3, shape=(4,), chunk=1)
    assert torch.equal(torch.get_rng_state(), before)
    lazily = from_torch(
        make, "cross_entropy", classes=3, chunk=1
    )  # no shape: found with the first rows, before any is used
    with pytest.raises(Unsupported, match=said):
        gradients(lazily, lazily.start(), np.zeros((2, 4)), np.zeros(2))


class MixesABatch(nn.Linear):
    """Subtracts the mean of its batch: what no list of names can know."""

    def forward(self, x):
        return super().forward(x - x.mean(0, keepdim=True) / 2)


def test_a_layer_that_would_mix_a_batch_never_sees_one():
    for chunk in (1, 8):
        model = from_torch(lambda: MixesABatch(4, 3), "cross_entropy", classes=3, chunk=chunk)
        X, y = records((4,), {})
        theta = model.start()
        np.testing.assert_allclose(
            gradients(model, theta, X, y)[4], gradients(model, theta, X[4:5], y[4:5])[0], rtol=1e-4, atol=1e-7
        )
        np.testing.assert_allclose(model.scores(theta, X)[4], model.scores(theta, X[4:5])[0], rtol=1e-5)


class Fails(nn.Linear):
    """Raises for some records."""

    def forward(self, x):
        if float(x.detach().sum()) > 100:
            raise IndexError("too large: 1234567")
        return super().forward(x)


def test_a_record_on_which_the_module_raises_counts_as_zero():
    model = from_torch(lambda: Fails(4, 3), "cross_entropy", classes=3, shape=(4,), chunk=1)
    X, y = records((4,), {})
    bad = X.copy()
    bad[7] = 1000.0
    bound = 0.5 * 2**8 + math.sqrt(model.size) / 2
    told = []
    with pytest.warns(RuntimeWarning, match="raised IndexError for a record") as said:
        total = whole_sum(model, model.start(), bad, y, 0.5, 2.0**-8, bound, lost=told.append)
    assert told == [1]
    assert "1234567" not in str(said[0].message)  # what the module says may hold the record
    rest = whole_sum(model, model.start(), np.delete(X, 7, axis=0), np.delete(y, 7), 0.5, 2.0**-8, bound)
    assert (total == rest).all()


def test_words_that_are_not_in_the_book_in_a_chunk():
    model = from_torch(Words, "cross_entropy", classes=3, shape=(6,), chunk=8, whole_inputs=True)
    X, y = records((6,), {"whole": True})
    X[2, 0] = 99.0
    with pytest.warns(RuntimeWarning, match="raised IndexError"):
        found = gradients(model, model.start(), X, y)
    assert np.isnan(found[2]).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).all()
    with pytest.raises(InvalidValue, match=r"takes whole numbers, got 0\.5"):
        gradients(model, model.start(), np.full((1, 6), 0.5), np.zeros(1))


class Sentences(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cells, self.out = nn.Embedding(10, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(self.cells(self.words(x))[0][:, -1])


def test_records_that_fall_back_to_one_by_one_have_their_whole_gradient():
    """functional_call leaves an LSTM with other tensors than its parameters: nothing of that may be seen afterwards."""
    X, y = records((6,), {"whole": True})
    X[2, 0] = 99.0
    both = []
    for chunk in (8, 1):
        model = from_torch(Sentences, "cross_entropy", classes=3, shape=(6,), chunk=chunk, whole_inputs=True)
        theta = model.start() + 0.3
        with pytest.warns(RuntimeWarning, match="raised IndexError"):
            both.append(gradients(model, theta, X, y))
        labels = model.module(theta)(torch.tensor(X[3:]).long()).argmax(1).numpy()
        assert (model.predict(theta, X[3:]) == labels).all()
    np.testing.assert_allclose(both[0], both[1], rtol=1e-4, atol=1e-6)


def test_one_record_moves_the_whole_sum_by_its_own_vector():
    model = from_torch(cnn, "cross_entropy", classes=3, shape=(1, 10, 10), chunk=1)
    X, y = records((100,), {}, m=12)  # flat rows, as a table has them
    bound = 0.25 * 2**12 + math.sqrt(model.size) / 2
    theta = model.start()
    total = whole_sum(model, theta, X, y, 0.25, 2.0**-12, bound)
    for r in (0, 5, 11):
        own = whole_sum(model, theta, X[r : r + 1], y[r : r + 1], 0.25, 2.0**-12, bound)
        rest = whole_sum(model, theta, np.delete(X, r, axis=0), np.delete(y, r), 0.25, 2.0**-12, bound)
        assert (total - rest == own).all()
        assert 0 < sum(int(k) ** 2 for k in own) <= bound**2
    np.testing.assert_allclose(total * 2.0**-12, clipped_sum(model, theta, X, y, 0.25), atol=12 * 2.0**-13)


def test_the_start_is_public_and_torchs_generator_is_left_alone():
    before = torch.get_rng_state()
    starts = [from_torch(cnn, "cross_entropy", classes=3, seed=seed).start() for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    assert (starts[0] == starts[1]).all()
    assert (starts[0] != starts[2]).any()
    given = nn.Linear(4, 3)
    model = from_torch(given, "cross_entropy", classes=3)
    with torch.no_grad():
        given.weight += 1.0  # the model has a copy
    assert (model.start()[:12] != given.weight.detach().numpy().ravel()).all()


def test_theta_goes_in_and_comes_out():
    model = from_torch(lambda: nn.Sequential(Tied(), nn.Linear(4, 3)), "cross_entropy", classes=3)
    assert model.size == 16 + 2 + 15  # the tied matrix once, no frozen numbers
    theta = np.random.default_rng(0).standard_normal(model.size)
    state = model.state(theta)
    assert set(state) == {"0.there.weight", "0.back.weight", "0.shift", "0.frozen", "0.unused", "1.weight", "1.bias"}
    assert (state["0.there.weight"] == state["0.back.weight"]).all()
    np.testing.assert_allclose(state["1.bias"], theta[-3:], rtol=1e-6)
    module = model.module(theta)
    X, _ = records((4,), {})
    expected = module(torch.tensor(X, dtype=torch.float32)).detach().numpy().argmax(axis=1)
    assert (model.predict(theta, X) == expected).all()
    assert (model.correct(theta, X, expected.astype(float))).all()


def test_fingerprints_tell_modules_and_starts_apart():
    def print_of(make, **options):
        return from_torch(make, "cross_entropy", classes=3, **options).fingerprint()

    class Moved(Tied):
        def __init__(self):
            super().__init__()
            self.shift += 1.0

    same = print_of(lambda: nn.Sequential(Tied(), nn.Linear(4, 3)))
    assert same == print_of(lambda: nn.Sequential(Tied(), nn.Linear(4, 3)), chunk=1)
    others = {
        print_of(lambda: nn.Sequential(Tied(), nn.Linear(4, 3)), seed=1),
        print_of(lambda: nn.Sequential(Tied(), nn.Linear(4, 3)), shape=(4,)),
        print_of(lambda: nn.Sequential(Moved(), nn.Linear(4, 3))),
        print_of(lambda: nn.Sequential(Tied(), nn.Linear(4, 3, bias=False))),
    }
    assert len(others - {same}) == 4


def test_regression_and_losses_of_ones_own():
    X = np.random.default_rng(0).standard_normal((9, 4))
    y = X @ np.array([1.0, -1.0, 0.5, 0.0])
    model = from_torch(lambda: nn.Linear(4, 1), "mse")
    theta = model.start()
    predicted = model.predict(theta, X)
    np.testing.assert_allclose(model.losses(theta, X, y), (predicted - y) ** 2, rtol=1e-4)
    np.testing.assert_allclose(
        gradients(model, theta, X, y)[:, :4], 2 * (predicted - y)[:, None] * X, rtol=1e-4, atol=1e-6
    )
    huber = from_torch(lambda: nn.Linear(4, 1), nn.HuberLoss(), chunk=1)
    assert np.abs(gradients(huber, theta, X, 100 * y)[:, 4]).max() <= 1.0
    with pytest.raises(Unsupported, match="is not one number for one record; return a scalar"):
        from_torch(lambda: nn.Linear(4, 1), lambda output, _: torch.cat([output, output]), shape=(4,))


def test_bad_input_is_refused_with_the_way_out():
    linear = nn.Linear(4, 3)
    with pytest.raises(InvalidValue, match="give classes="):
        from_torch(linear, "cross_entropy")
    with pytest.raises(InvalidValue, match="leave classes out"):
        from_torch(linear, "mse", classes=3)
    with pytest.raises(InvalidValue, match="unknown loss 'hinge'; choose one of cross_entropy, mse"):
        from_torch(linear, "hinge", classes=3)
    with pytest.raises(InvalidValue, match=r"must be a torch.nn.Module or a function"):
        from_torch(3, "mse")
    with pytest.raises(InvalidValue, match="gave int, not a"):
        from_torch(lambda: 3, "mse")
    with pytest.raises(Unsupported, match=r"gives \(1, 3\) for one record; it must give 10 numbers, one per class"):
        from_torch(linear, "cross_entropy", classes=10, shape=(4,))
    with pytest.raises(InvalidValue, match=r"in the layer Linear.forward: a record of shape \(5,\) gives RuntimeError"):
        from_torch(linear, "cross_entropy", classes=3, shape=(5,))
    with pytest.raises(InvalidValue, match="nothing to learn"):
        from_torch(nn.Flatten(), "cross_entropy", classes=3)
    with pytest.raises(Unsupported, match=r"bfloat16; call .float\(\)"):
        from_torch(nn.Linear(4, 3).bfloat16(), "cross_entropy", classes=3)
    with pytest.raises(InvalidValue, match="has no shape yet"):
        from_torch(nn.LazyLinear(3), "cross_entropy", classes=3)
    model = from_torch(linear, "cross_entropy", classes=3, shape=(4,))
    with pytest.raises(InvalidValue, match=r"takes records of shape \(4,\)"):
        model.predict(model.start(), np.zeros((2, 5)))
    with pytest.raises(InvalidValue, match=r"beyond torch.float32: 1e\+300 in 'weight'; give a smaller step"):
        gradients(model, np.full(15, 1e300), np.zeros((1, 4)), np.zeros(1))
    with pytest.raises(InvalidValue, match="row 0 has the label 3"):
        gradients(model, model.start(), np.zeros((1, 4)), np.array([3.0]))
    with pytest.raises(Unsupported, match="MaskedDescent"):
        model.expansion(np.zeros((1, 4)), 1.0, 1.0)
    assert gradients(model, model.start(), np.zeros((0, 4)), np.zeros(0)).shape == (0, 15)
    assert model.predict(model.start(), np.zeros((0, 4))).shape == (0,)


def test_a_model_in_other_chunks_is_the_same_model():
    model = from_torch(cnn, "cross_entropy", classes=3, shape=(1, 10, 10))
    model.predict(np.zeros(model.size), np.zeros((1, 100)))  # whatever it was asked before
    alone = model.in_chunks(1)
    assert (model.exact, alone.exact, alone.chunk) == (False, True, 1)
    assert alone.fingerprint() == model.fingerprint()
    assert model.in_chunks(64) is model


def test_large_models_are_taken_record_by_record():
    model = from_torch(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(3000, 2000), nn.Linear(2000, 3)), "cross_entropy", classes=3
    )
    assert model.chunk == 2  # 6 million numbers: not 64 times that
    assert from_torch(lambda: nn.Linear(4, 3), "cross_entropy", classes=3).chunk == 64


def test_two_threads_do_not_see_each_others_models():
    model = from_torch(lambda: nn.Linear(4, 3), "cross_entropy", classes=3, chunk=1)
    X, y = records((4,), {})
    thetas = [np.full(15, size) for size in (0.1, -0.7)]
    expected = [gradients(model, theta, X, y) for theta in thetas]
    wrong = []

    def work(i):
        for _ in range(5):
            if not (gradients(model, thetas[i], X, y) == expected[i]).all():
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_nothing_else_loads_torch():
    script = (
        "import sys, netdp, netdp.models, netdp.cli, netdp.models.parties, netdp.learn\n"
        "netdp.models.clipped_sum(netdp.models.Linear(1), [0.0], [[1.0]], [1.0], 1.0)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_why_batch_norm_is_refused_one_record_moves_all_the_others():
    """Gradients clipped to 1 each, and one record more moves their sum by far more than 1.

    Proof: docs/proofs/learning.md#record-gradients.
    """
    torch.manual_seed(0)
    module = nn.Sequential(nn.BatchNorm1d(2, affine=False, track_running_stats=False), nn.Linear(2, 2, bias=False))
    X = torch.randn(16, 2)
    y = (X[:, 0] > 0).long()

    def clipped_total(rows, labels):
        losses = nn.functional.cross_entropy(module(rows), labels, reduction="none")
        each = [torch.autograd.grad(loss, module[1].weight, retain_graph=True)[0] for loss in losses]
        return sum(gradient / max(1.0, float(gradient.norm())) for gradient in each)

    with_it = clipped_total(torch.cat([X, torch.tensor([[-1e4, 1e4]])]), torch.cat([y, torch.tensor([1])]))
    moved = float((with_it - clipped_total(X, y)).norm())
    assert moved > 3.0
    with pytest.raises(Unsupported, match="GroupNorm"):
        from_torch(module, "cross_entropy", classes=2)


def test_a_function_that_is_the_first_to_import_torch_starts_from_the_public_seed(monkeypatch):
    """Else every process would begin with numbers of its own; a module that does not speak of torch leaves it alone."""
    with seeded(0):
        public = torch.rand(3)
    monkeypatch.setattr(code, "sys", types.SimpleNamespace(modules={}))  # as before the function has run
    for content, same in ((b"def net():\n    import torch\n", True), (b"import numpy\n", False)):
        torch.manual_seed(7)
        with code._seeded(content):
            assert torch.equal(torch.rand(3), public) == same
