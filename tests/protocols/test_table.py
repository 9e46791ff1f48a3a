"""The table from protocols to functions: exact types, known options, refusals with reasons."""

from __future__ import annotations

import pytest

from netdp.errors import InvalidValue, Unsupported
from netdp.protocols import Central, Local, RingSum, Table


class Louder(Local):
    """A subclass that might do anything: what was proved for Local does not cover it."""


def half(protocol: Local | Central, by: float = 2.0, *, twice: bool = False) -> float:
    return protocol.n / by / (2 if twice else 1)


@pytest.fixture
def halves():
    table = Table("half", "cannot be halved")
    table.register(half)
    return table


def test_a_union_enters_each_of_its_types(halves):
    assert halves(Local(10, sigma=1.0)) == 5
    assert halves(Central(10, sigma=1.0), 5.0, twice=True) == 1
    assert halves.options(Central(10, sigma=1.0)) == ("twice",)


def test_unknown_options_are_refused_by_name(halves):
    with pytest.raises(InvalidValue, match="half of Local takes no option 'thrice'; its options: twice"):
        halves(Local(10, sigma=1.0), thrice=True)
    table = Table("name", "has no name")

    @table.register
    def _name(protocol: Local) -> str:
        return "local"

    with pytest.raises(InvalidValue, match="name of Local takes no option 'twice'; it has none"):
        table(Local(10, sigma=1.0), twice=True)
    assert table(Local(10, sigma=1.0)) == "local"


def test_a_function_that_takes_anything_is_refused_when_it_is_entered():
    table = Table("name", "has no name")

    def careless(protocol: Local, **options: object) -> str:
        return "local"

    def nameless(protocol):
        return "local"

    with pytest.raises(InvalidValue, match=r"careless takes any option \(\*\*\); list the options it knows"):
        table.register(careless)
    with pytest.raises(InvalidValue, match="annotate the first argument of nameless"):
        table.register(nameless)
    assert not table.handles(Local(2, sigma=1.0))


def test_subclasses_are_not_handled_unless_entered_with_them(halves):
    loud = Louder(10, sigma=1.0)
    assert not halves.handles(loud)
    assert halves.options(loud) == ()
    with pytest.raises(Unsupported, match="Louder cannot be halved"):
        halves(loud)
    whole = Table("whole", "has no whole")
    whole.register_with_subclasses(half)
    assert whole(loud, 1.0) == 10
    with pytest.raises(InvalidValue, match="whole of Louder takes no option 'thrice'"):
        whole(loud, thrice=1)


def test_a_subclass_of_a_protocol_is_neither_accounted_for_nor_run_by_its_parent():
    from netdp import simulate
    from netdp.protocols.accounting import account
    from netdp.protocols.accuracy import expected_error
    from netdp.protocols.alternatives import local_dp, trusted_curator
    from netdp.protocols.calibration import calibrate

    loud = Louder(10, sigma=1.0)
    for ask in (
        lambda: account(loud, [0]),
        lambda: calibrate(loud, 1.0, 1e-6),
        lambda: expected_error(loud),
        lambda: local_dp(loud),
        lambda: trusted_curator(loud),
        lambda: simulate(loud, [0] * 10, 0),
    ):
        with pytest.raises(Unsupported, match="Louder "):
            ask()
    with pytest.raises(InvalidValue, match="Louder has no kind of its own"):  # it would be read back as Local
        loud.to_dict()


def test_the_nearest_entry_counts():
    table = Table("who", "is nobody")

    @table.register_with_subclasses
    def _parent(protocol: Local) -> str:
        return "parent"

    @table.register
    def _child(protocol: Louder) -> str:
        return "child"

    assert table(Louder(10, sigma=1.0)) == "child"
    assert table(Local(10, sigma=1.0)) == "parent"


def test_refusals_say_why_also_for_subclasses(halves):
    halves.refuse(RingSum, why="a ring has no half")
    with pytest.raises(Unsupported, match="RingSum cannot be halved: a ring has no half"):
        halves(RingSum(5, 1, sigma=1.0))

    class Oval(RingSum):
        pass

    with pytest.raises(Unsupported, match="Oval cannot be halved: a ring has no half"):
        halves(Oval(5, 1, sigma=1.0))


def test_progress_is_passed_on_where_it_is_known_and_left_out_where_it_is_not(halves):
    table = Table("work", "does no work")
    told = []

    @table.register
    def _work(protocol: Local, *, progress=None) -> int:
        progress(1, 2)
        return 1

    table(Local(10, sigma=1.0), progress=lambda *at: told.append(at))
    assert told == [(1, 2)]
    assert halves(Local(10, sigma=1.0), progress=lambda *at: told.append(at)) == 5
    assert told == [(1, 2)]
