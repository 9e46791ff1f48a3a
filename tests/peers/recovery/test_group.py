"""The group of prime order: against its own formulas, and against every point that is none."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl import bindings

from netdp.errors import InvalidValue, MissingDependency
from netdp.peers.recovery import group
from netdp.peers.recovery.group import ORDER, base, combination, is_point, plus, random_scalar, scalar_bytes, times

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
IDENTITY = (1).to_bytes(32, "little")
SCALARS = st.integers(1, ORDER - 1)


def decoded(point):
    """x and y of a point, as RFC 8032 says."""
    number = int.from_bytes(point, "little")
    y, odd = number % 2**255, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert x * x % P == square
    return (x if x % 2 == odd else P - x, y)


def encoded(x, y):
    return (y | (x % 2) << 255).to_bytes(32, "little")


def added(one, other):
    (a, b), (c, d) = one, other
    product = D * a * b * c * d % P
    return (a * d + b * c) * pow(1 + product, -1, P) % P, (b * d + a * c) * pow(1 - product, -1, P) % P


def multiplied(scalar, point):
    total = (0, 1)
    for bit in f"{scalar:b}":
        total = added(total, total)
        if bit == "1":
            total = added(total, point)
    return total


BASE = decoded(bytes.fromhex("58" + "66" * 31))


def small_points():
    """The eight points whose order divides 8."""
    y = 2
    while True:
        y += 1
        try:
            point = multiplied(ORDER, decoded(encoded(0, y)))
        except AssertionError:
            continue
        if multiplied(4, point) != (0, 1):
            break
    return [encoded(*multiplied(k, point)) for k in range(8)]


SMALL = small_points()
MIXED = [encoded(*added(BASE, decoded(small))) for small in SMALL[1:]]
SECOND_NAMES = [(P + k).to_bytes(32, "little") for k in range(19)] + [(1 | 1 << 255).to_bytes(32, "little")]


@given(SCALARS, SCALARS)
def test_it_is_the_group_of_the_formulas(a, b):
    point = multiplied(a, BASE)
    assert base(a) == encoded(*point)
    assert times(b, base(a)) == encoded(*multiplied(b, point)) == base(a * b % ORDER)
    if (a + b) % ORDER and a != b:
        assert plus(base(a), base(b)) == combination(a, 1, base(b)) == base((a + b) % ORDER)


def test_its_order_is_a_prime():
    assert multiplied(ORDER, BASE) == (0, 1)
    assert all(pow(a, ORDER - 1, ORDER) == 1 for a in (2, 3, 5, 7, 11))
    assert len(set(SMALL)) == 8


@pytest.mark.parametrize("point", [*SMALL, *MIXED, *SECOND_NAMES, b"", bytes(31), bytes(33), bytes([255] * 32)])
def test_what_is_no_point_is_refused_everywhere(point):
    assert not is_point(point)
    for refused in (lambda: times(3, point), lambda: combination(2, 3, point), lambda: plus(point, base(1)),
                    lambda: plus(base(1), point)):  # fmt: skip
        with pytest.raises(InvalidValue, match="no point of the group"):
            refused()


def test_libsodium_adds_what_is_no_point_so_plus_must_check():
    sums = [bindings.crypto_core_ed25519_add(base(5), point) for point in MIXED]
    assert not any(map(is_point, sums))


@given(st.binary(max_size=40))
def test_bytes_from_anybody_are_points_or_refused(point):
    if is_point(point):
        assert encoded(*decoded(point)) == point
        assert multiplied(ORDER, decoded(point)) == (0, 1)
        times(3, point)
    else:
        with pytest.raises(InvalidValue):
            times(3, point)


@pytest.mark.parametrize("scalar", [0, ORDER, -1, 2**256])
def test_scalars_that_are_none(scalar):
    with pytest.raises(InvalidValue, match="between 1 and"):
        base(scalar)
    with pytest.raises(InvalidValue, match="between 1 and"):
        times(scalar, base(1))


def test_a_sum_that_is_no_key():
    with pytest.raises(InvalidValue, match="identity"):
        plus(base(5), base(ORDER - 5))
    assert bindings.crypto_core_ed25519_add(base(5), base(ORDER - 5)) == IDENTITY


@given(st.integers(0, ORDER - 1))
def test_a_scalar_has_one_name(scalar):
    assert group.scalar_of("x", scalar_bytes(scalar)) == scalar
    second = scalar + ORDER
    if second < 2**256:
        with pytest.raises(InvalidValue, match="x is not reduced"):
            group.scalar_of("x", second.to_bytes(32, "little"))


@pytest.mark.parametrize("scalar", [-1, ORDER])
def test_a_number_that_is_no_scalar_is_not_shown(scalar):
    with pytest.raises(InvalidValue) as refused:
        scalar_bytes(scalar)
    assert str(scalar) not in str(refused.value).replace("ℓ − 1", "")


def test_scalars_are_drawn_from_all():
    drawn = [random_scalar() for _ in range(400)]
    assert len(set(drawn)) == 400
    assert 100 < sum(scalar > ORDER // 2 for scalar in drawn) < 300


def test_nobody_else_pays_for_it():
    code = "import sys, netdp.peers.recovery.masks; print('nacl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_pynacl_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nacl", None)
    group._sodium.cache_clear()
    try:
        with pytest.raises(MissingDependency, match=r"pip install 'netdp\[peers\]'"):
            base(1)
    finally:
        monkeypatch.undo()
        group._sodium.cache_clear()
