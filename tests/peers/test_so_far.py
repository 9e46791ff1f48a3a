"""How far a training is, in words: what was revealed so far, who is waited for, and the owner's own loss for the owner alone."""

import itertools

import pytest

from netdp.peers.events import fields_of
from netdp.peers.launch import LaunchProgress
from netdp.peers.promise import worst_epsilon
from netdp.peers.status import Look, Standing, lines
from netdp.peers.study import Study, Training
from netdp.peers.study.progress import SoFar, is_training, together, training_words

STATUS = {"iteration": 37, "of": 161, "rate": 4.25, "bytes": 3_100_000, "waiting": ["oak"], "loss": 0.61532}


@pytest.fixture(scope="module")
def study():
    task = Training(
        features=[{"name": "x", "range": [0, 1]}], label="y", classes=["a", "b"], max_records=500, held_out=0.1
    )
    return Study.plan("far", task, ["a", "b", "c"], graph="ring:3", epsilon=2.0, delta=1e-6, iterations=20)


def test_what_was_revealed_so_far_grows_to_what_is_promised(study):
    so_far = SoFar(study)
    assert so_far.epsilon(0) == 0
    assert so_far.epsilon(3) is None  # nobody has computed it yet
    so_far.work()
    found = [so_far.epsilon(k) for k in range(1, 22)]
    assert all(a <= b for a, b in itertools.pairwise(found))
    assert 0 < found[0] < 0.5 * found[-1]
    assert found[-1] == study.check_promise() <= 2.0
    # at most: the certified loss of just so many iterations is never above
    for k in (1, 7, 13):
        assert found[k - 1] >= worst_epsilon(study.protocol().replace(iterations=k), 1, 1e-6)


def test_it_is_computed_in_the_background_and_only_for_a_training(study):
    so_far = SoFar(study).begin()
    so_far._thread.join(60)
    assert so_far.epsilon(20) is not None


def test_words(study):
    assert training_words(STATUS) == "iteration 37 of 161, 4.2 a second, 3.1 MB sent, waiting for oak"
    assert "own loss 0.6153" in training_words(STATUS, loss=True)
    so_far = SoFar(study)
    so_far.work()
    assert "epsilon at most" in training_words(STATUS | {"iteration": 5}, so_far)
    assert not is_training({"attempt": 1, "votes": 2})


def test_of_all_parties_the_slowest_counts_and_whom_the_most_wait_for():
    statuses = {
        "ash": STATUS | {"iteration": 38}, "elm": STATUS, "oak": STATUS | {"iteration": 37, "waiting": []}, "fir": {"attempt": 1},
    }  # fmt: skip
    found = together(statuses)
    assert (found["iteration"], found["bytes"], found["waiting"]) == (37, 9_300_000, ["oak"])
    assert "loss" not in found
    # elm has died, and what it said last was that it waits, too
    each = {name: STATUS | {"waiting": [whom]} for name, whom in (("ash", "elm"), ("oak", "elm"), ("elm", "oak"))}
    assert together(each)["waiting"] == ["elm"]
    assert together({"fir": {"attempt": 1}}) is None
    words = LaunchProgress(4, status=statuses, listening={"ash"}).words
    assert words.startswith("iteration 37 of 161")
    assert "loss" not in words


def test_the_own_loss_goes_to_no_log_and_no_file(tmp_path):
    event = {"event": "status", "attempt": 1, "links": 2, "votes": 3, "contributions": 3, **STATUS}
    told = fields_of(event)
    assert told["iteration"] == 37
    assert "loss" not in told
    assert "dropped" not in told
    standing = Standing(tmp_path)
    standing.begin("ash", "far", b"\0" * 32, ["oak"])
    standing(event)
    standing.write()
    assert "0.6153" not in (tmp_path / "status.json").read_text()
    shown = lines(Look(True, 1, standing.state, 0.0), tmp_path)
    assert "training    iteration 37 of 161, 4.2 a second" in shown
