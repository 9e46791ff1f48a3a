"""A party's limits: what fits, what does not and by how much, and that nothing is counted twice or forgotten."""

import math
import re
from dataclasses import replace

import pytest

from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.peers.ledger.entries import Entry, entry_of, losses, total
from netdp.peers.ledger.entries import spent as spent_on
from netdp.peers.ledger.losses import profile_loss
from netdp.peers.ledger.policy import (
    OwnerPolicy,
    PolicyDecision,
    SpendingLimit,
    smallest_roster,
    verdict_lines,
    written_since,
)
from netdp.peers.ledger.store import Store
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.privacy import GaussianCurve, ProfileCurve
from netdp.privacy.filters import least_limit, limit_admits

NAMES = [f"c{u}" for u in range(6)]
NOW = "2026-11-16T10:00:00Z"


def plan(name="waits", unit="party", kind="masked-sum", **options):
    more = {"max_records": 100} if unit == "record" else {}
    task = Task(kind="mean", column="minutes", bounds=(0, 120), unit=unit, **more)
    options = {"epsilon": 1.0} | options
    return Study.plan(name, task, NAMES, graph="complete:6", delta=1e-6, kind=kind, **options)


def policy(*limits, unit="party", delta=1e-6):
    return OwnerPolicy(
        delta=delta, unit=unit, limit=[dict(zip(("against", "per", "epsilon"), one, strict=True)) for one in limits]
    )


def spent(study, attempts=(1,), roster=range(6), time=NOW):
    return [entry_of(study, attempt, tuple(roster), 0, time) for attempt in attempts]


STUDY = plan(attempts=2, absent=1)


# ── what a study costs ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_study_reserves_what_it_promises():
    """All attempts, in rosters as small as allowed: the very number that the study promises."""
    (one,) = policy((1, "study", 1.0)).check(STUDY, [], 0, NOW)
    assert one.together == one.study == pytest.approx(float(STUDY.promise().worst_epsilon(1e-6)), rel=1e-9)
    assert (one.before, one.over, one.holds) == (0.0, 0.0, True)


def test_attempts_that_were_made_are_not_counted_twice():
    fresh = policy((1, "study", 1.0), (1, "total", 1.05)).check(STUDY, [], 0, NOW)
    for made in ([1], [1, 2]):
        later = policy((1, "study", 1.0), (1, "total", 1.05)).check(STUDY, spent(STUDY, made), 0, NOW)
        assert [v.together for v in later] == [v.together for v in fresh]
        assert [v.before for v in later] == [0.0, 0.0]


def test_limits_of_a_study_do_not_see_other_studies_and_totals_do():
    others = spent(plan("heights"))
    in_study, in_all = policy((1, "study", 1.0), (1, "total", 9.0)).check(STUDY, others, 0, NOW)
    assert in_study.together == in_study.study
    assert in_all.before == least_limit(losses(others, 1), 1e-6)
    assert max(in_all.study, in_all.before) < in_all.together < in_all.study + in_all.before
    worst = entry_of(STUDY, 1, smallest_roster(STUDY, 0), 0, NOW)
    everything = [worst, replace(worst, attempt=2), *others]
    assert in_all.together == least_limit(losses(everything, 1), 1e-6)
    fixed = float(total(everything, 1).epsilon(1e-6))
    assert fixed < in_all.together < 1.04 * fixed


def test_limits_hold_although_kinds_are_chosen_after_looking():
    """First μ = 0.2; then a Gaussian and a pure loss that both end exactly at ε = 3 if they are fixed beforehand."""

    def entry(number, one):
        loss = profile_loss({"c1": one}, one)
        return Entry(NOW, f"{number:064x}", f"study {number}", 1, ("c0", "c1"), "c0", "party", 1e-6, loss)

    first, response = entry(1, GaussianCurve(0.2)), ProfileCurve([0.0, 2.1707], [math.tanh(2.1707 / 2), 0.0])
    for second in (entry(2, GaussianCurve(0.6161)), entry(2, response)):
        assert float(total([first, second], 1).epsilon(1e-6)) == pytest.approx(3.0, abs=2e-3)
        assert not limit_admits(losses([first, second], 1), 3.0, 1e-6)
        both = spent_on([first, second], 1, "party", 1e-6)
        assert both.epsilon > 3.1 > both.fixed


def test_a_year_is_a_calendar_year():
    others = spent(plan("heights"), time="2025-12-31T23:59:59Z")
    limits = policy((1, "year", 9.0), (1, "total", 9.0))
    this_year, ever = limits.check(STUDY, others, 0, NOW)
    assert (this_year.before, ever.before > 0) == (0.0, True)
    assert limits.check(STUDY, others, 0, "2025-12-31")[0].before == ever.before
    assert this_year.words == "any 1 party, in 2026"


def test_a_clock_that_was_set_back_makes_no_budget():
    others = [*spent(plan("heights")), *spent(plan("ages"), time="1970-01-01")]
    limits = policy((1, "year", 9.0))
    right = limits.check(STUDY, others, 0, NOW)[0].before
    assert right == least_limit(losses(others, 1), 1e-6)
    assert limits.check(STUDY, others, 0, "1970-01-02")[0].before == right


def test_a_study_that_goes_on_into_the_next_year_reserves_what_is_left_there():
    made = spent(STUDY, (1,), time="2025-12-31")
    (verdict,) = policy((1, "year", 9.0)).check(STUDY, made, 0, NOW)
    once = entry_of(STUDY, 1, smallest_roster(STUDY, 0), 0, NOW)
    assert verdict.together == least_limit(losses([once], 1), 1e-6)


def test_the_first_study_of_a_period_may_use_all_of_it_if_it_can_go_one_way_only():
    single = plan("single", attempts=1, absent=0)
    alone = policy((1, "study", 9.0)).check(single, [], 0, NOW)[0].together
    assert policy((1, "total", alone)).check(single, [], 0, NOW)[0].together == alone
    assert (
        policy((1, "total", alone)).check(single, spent(single), 0, NOW)[0].together == alone
    )  # and again after a restart
    with pytest.raises(Refused, match="in all: it would be"):  # then nothing is left, however little is asked
        policy((1, "total", alone)).check(plan("little", epsilon=0.01), spent(single), 0, NOW)
    # with a second attempt it depends on what happens whether something is left: no first study is like that
    with pytest.raises(
        Refused, match=r"its own 1\.0000?, with room for later studies that are chosen after its answer is seen"
    ):
        policy((1, "total", 1.0)).check(STUDY, [], 0, NOW)


def test_larger_coalitions_cost_more():
    one, two, many = policy((1, "study", 9.0), (2, "study", 9.0), (99, "study", 99.0)).check(STUDY, [], 0, NOW)
    assert one.together < two.together < many.together < math.inf


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_refusal_says_by_how_much():
    others = spent(plan("heights"))
    needed = policy((1, "total", 9.0)).check(STUDY, others, 0, NOW)[0].together
    with pytest.raises(Refused) as found:
        policy((1, "study", 1.0), (1, "total", 1.2)).check(STUDY, others, 0, NOW)
    said = str(found.value)
    assert "the policy of c0 does not allow the study 'waits': any 1 party, in all: it would be" in said
    assert "any 1 party, this study: " not in said  # that one holds
    over = float(re.search(r"1\.200 is allowed, ([\d.]+) too much", said)[1])
    assert needed - 1.2 <= over <= (needed - 1.2) * 1.001
    assert "\n" not in said
    assert [verdict.holds for verdict in found.value.verdicts] == [True, False]
    table = verdict_lines(found.value.verdicts)
    assert len(table) == 3
    assert all(len(line) <= 80 for line in table)


def test_a_limit_holds_to_the_last_digit():
    needed = policy((1, "study", 9.0)).check(STUDY, [], 0, NOW)[0].together
    policy((1, "study", needed)).check(STUDY, [], 0, NOW)
    with pytest.raises(Refused, match="too much"):
        policy((1, "study", math.nextafter(needed, 0.0))).check(STUDY, [], 0, NOW)


def test_record_level_studies_cannot_meet_a_limit_on_all_data():
    record = plan("records", unit="record")
    with pytest.raises(Refused, match="protects single records, and the policy of c0 all of its data"):
        policy((1, "total", 1e6)).check(record, [], 0, NOW)
    (verdict,) = policy((1, "total", 9.0), unit="record").check(record, spent(STUDY), 0, NOW)
    assert verdict.before > 0  # an entry about all data counts for each record, too
    with pytest.raises(Refused, match="what is in the ledger has no bound"):
        policy((1, "total", 1e6)).check(STUDY, spent(record), 0, NOW)
    policy((1, "study", 1.0)).check(STUDY, spent(record), 0, NOW)
    assert policy((1, "year", 1.05)).check(STUDY, spent(record, time="2025-01-01"), 0, NOW)[0].holds


def test_a_ring_has_a_weakness_against_two_that_a_policy_sees():
    ring = plan("ring", kind="ring-sum")
    one, many = policy((1, "study", 1.0), (2, "study", 99.0)).verdicts(ring, [], 2, NOW)
    assert one.together <= 1.0
    assert many.together > 1.5 * one.together


@pytest.mark.parametrize("kind", ["ring-sum", "gossip"])
def test_studies_kept_as_tables_cost_no_more_than_they_promise(kind):
    """Every party, at the study's δ: a study planned for ε = 1 fits a limit of 1."""
    study = plan(kind, kind=kind, colluders=2)
    promised = float(study.promise().worst_epsilon(1e-6))
    found = [policy((2, "study", 1.0)).check(study, [], me, NOW)[0].together for me in range(6)]
    assert max(found) <= promised * (1 + 1e-9)
    assert max(found) == pytest.approx(promised, rel=1e-3)


def test_the_ledger_is_read_from_the_store(tmp_path):
    other = plan("heights")
    with Store.open(tmp_path / "peer.db") as store:
        (entry,) = spent(other)
        store.spend(other.hash, 1, (2, 1, 0, 0), b"y", b"", entry)
        assert policy((1, "total", 9.0)).check(STUDY, store, 0, NOW)[0].before > 0


def test_who_is_asked():
    assert smallest_roster(STUDY, 5) == (0, 1, 2, 3, 5)
    with pytest.raises(InvalidValue, match="there is no party 6"):
        policy((1, "study", 1.0)).check(STUDY, [], 6, NOW)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_default_text(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(OwnerPolicy.default_text)
    default = OwnerPolicy.read(file)
    assert (default.delta, default.unit) == (1e-6, "party")
    assert [(one.against, one.per, one.epsilon) for one in default.limits] == [
        (1, "study", 1.0),
        (1, "year", 3.0),
        (1, "total", 10.0),
    ]
    assert all(len(line) <= 80 for line in OwnerPolicy.default_text.splitlines())
    assert all(verdict.holds for verdict in default.check(plan(), [], 0))
    # what it suggests in comments can be used
    used = OwnerPolicy.default_text
    for line in ("[[limit]]", "against = 2", 'per = "year"', "epsilon = 5.0"):
        used = used.replace(f"# {line}", line)
    assert len(OwnerPolicy.from_text(used).limits) == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "match"),
    [
        ("delta = 1e-6", "delta = 0.5", 5, "delta: is a chance"),
        ("delta = 1e-6", 'delta = "1e-6"', 5, "delta"),
        ("delta = 1e-6", "", None, "delta: is missing"),
        ("delta = 1e-6", "delta = 1e-6\nepsilon = 3.0", 6, "epsilon: is not known here"),
        ('unit = "party"', 'unit = "household"', 9, "unit"),
        ("against = 1", "against = 0", 15, "against: must be 1"),
        ("against = 1", "against = 1.0", 15, "against"),
        ("against = 1", 'against = "bob"', 15, "against"),
        ('per = "study"', 'per = "month"', 16, "per"),
        ("epsilon = 1.0", "epsilon = -1.0", 17, "epsilon: must be 0 or more"),
        ("epsilon = 1.0", "epsilon = inf", 17, "epsilon"),
        ("[[limit]]", "[limit]", None, "is not valid TOML"),
        ("[[limit]]", "[[limits]]", None, "limit"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, old, new, line, match):
    file = tmp_path / "policy.toml"
    file.write_text(OwnerPolicy.default_text.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=re.escape(match)) as found:
        OwnerPolicy.read(file)
    assert str(file) in str(found.value)
    if line is not None:
        assert found.value.line == line


def test_no_policy_allows_nothing(tmp_path):
    with pytest.raises(Refused, match="there is no policy in"):
        OwnerPolicy.read(tmp_path / "policy.toml")
    with pytest.raises(FileFormatError, match="allows everything"):
        OwnerPolicy.from_text("delta = 1e-6\nlimit = []")


def test_verdicts_for_people_and_programs():
    limit = SpendingLimit(against=2, per="total", epsilon=1.0)
    verdict = PolicyDecision(limit, limit.words(NOW), 0.5, math.inf, math.inf)
    assert verdict.to_dict() == {"against": 2, "per": "total", "epsilon": 1.0, "study": 0.5, "before": None,
                                 "together": None, "over": None, "holds": False}  # fmt: skip
    assert verdict_lines([verdict])[1].split() == ["any", "2", "parties,", "in", "all", "0.500", "∞", "∞", "1.00", "∞"]
    assert isinstance(spent(STUDY)[0], Entry)


def test_clocks_that_were_behind_make_no_budget():
    """Entries of a clock that stood at 1970, or before an earlier entry, count in every year; others in theirs."""
    times = [
        "2025-12-01T00:00:00Z",
        "2026-05-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2027-02-01T00:00:00Z",
        "2026-12-31T00:00:00Z",
    ]
    entries = [one for i, time in enumerate(times) for one in spent(STUDY, (i + 1,), time=time)]
    assert [entry.time for entry in written_since(entries, "2027-01-01T00:00:00Z")] == times[2:]
    assert [entry.time for entry in written_since(entries[2:3], "2027-01-01T00:00:00Z")] == [times[2]]
    assert [entry.time for entry in written_since(entries[1:2], "2027-01-01T00:00:00Z")] == []
