"""What the page is told: the numbers of the command line, and what can be copied says the same again."""

import json
import shlex

import numpy as np
import pytest

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.privacy import Claim
from netdp.settings.catalogue import CATALOGUE
from netdp.studio.controls import controls, example, protocols
from netdp.studio.explorer import Explorer

GOSSIP = {"graph": "hypercube:4", "protocol": "gossip", "rounds": 8, "sigma": 4.0, "masks": 10.0}
#: Examples of the catalogue that take seconds: smaller ones of the same.
SMALLER = {
    "secret-graph": {"graph": "complete:200"},
    "secret-graph-descent": {"graph": "complete:200", "edge-probability": 0.05},
    "randomized": {"steps": 6},
}


def state_of(name):
    state = {**example(CATALOGUE[name].example), "protocol": name, **SMALLER.get(name, {})}
    if "shuffle" not in name and "colluders" not in state:
        state["observer"] = ["0"]
    return state


def flags(state):
    from netdp.studio.snippets import command_line

    return shlex.split(command_line(state))[1:]


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_the_page_says_what_the_command_says(name, netdp_json):
    """Every protocol: the same ε for every party, the same claim, and its network can be drawn."""
    explorer, state = Explorer(), state_of(name)
    told = explorer.account(state)
    said = netdp_json(*shlex.split(explorer.words(state)["command"])[1:])
    epsilon = said["loss"]["epsilon"]
    assert told["epsilon"] == epsilon
    assert told["claim"] == said["loss"]["claim"]
    assert told["assumptions"] == said["loss"]["assumptions"]
    json.dumps(told, allow_nan=False)
    drawn = explorer.network(state)
    assert drawn["n"] == len(epsilon)
    if told["by_distance"]:
        worst = max(row["chosen"] for row in told["by_distance"])
        assert worst == told["worst"]


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_the_copied_python_says_the_same(name):
    explorer, state = Explorer(), state_of(name)
    code = explorer.words(state)["python"].replace("print(", "str(")
    space = {}
    exec(compile(code, "copied", "exec"), space)
    told = explorer.account(state)
    if told["claim"] == Claim.ESTIMATE.value:  # drawn by chance, from the same seed
        assert space["loss"].claim is Claim.ESTIMATE
        return
    here = np.array([np.nan if e is None else float(e) for e in told["epsilon"]])
    np.testing.assert_allclose(np.broadcast_to(space["loss"].epsilon(1e-6), here.shape), here, rtol=1e-12)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (GOSSIP | {"observer": ["0"], "graph": "ring:5"}, "gossip"),
        ({"graph": "hypercube:3", "protocol": "masked", "sigma": 2.0, "observer": ["0", "1"]}, "masked-sum"),
        ({"graph": "ring:6", "protocol": "token", "rounds": 1, "sigma": 6.0, "observer": ["0"]}, "ring-sum"),
        ({"graph": "regular:40,6,seed=1", "protocol": "shuffle", "rounds": 12, "epsilon0": 1.0, "delta": 1e-3}, "shuffle"),
    ],
)  # fmt: skip
def test_a_copied_study_keeps_what_the_page_says(state, kind, tmp_path):
    explorer = Explorer()
    promised = explorer.account(state)["worst"]
    path = tmp_path / "study.toml"
    path.write_text(explorer.draft(state, None)["study"])
    study = Study.read(path)
    assert study.settings.kind == kind
    assert study.privacy.epsilon == pytest.approx(promised, rel=2e-3)
    assert study.check_promise() <= study.privacy.epsilon
    assert study.n == explorer.network(state)["n"]
    # a target of one's own is promised as it is
    path.write_text(explorer.draft(state, 2.0)["study"])
    assert Study.read(path).privacy.epsilon == 2.0


def test_what_does_not_run_is_no_study():
    with pytest.raises(NetdpError, match=r"PushSum does not run between real parties.*masked"):
        Explorer().draft({"graph": "grid:3x3", "protocol": "push-sum", "rounds": 4, "sigma": 4.0}, None)


def test_a_target_turns_the_sliders():
    explorer, state = Explorer(), GOSSIP | {"observer": ["0"]}
    found = explorer.plan(state, 1.0, only_noise=False)
    assert {"plain", "masked"} <= {one["name"].split(",")[0] for one in found["options"]}
    turned = {"graph": state["graph"], "protocol": "gossip", "observer": ["0"], **found["settings"]}
    assert explorer.account(turned)["worst"] <= 1.0
    noise = explorer.plan(state, 1.0, only_noise=True)["settings"]
    assert {key for key in noise if noise[key] != state.get(key)} == {"sigma"}
    assert explorer.account(state | noise)["worst"] <= 1.0
    assert explorer.account(state | noise | {"sigma": noise["sigma"] * 0.9})["worst"] > 0.9


@pytest.mark.parametrize(
    "state",
    [
        {"graph": "hypercube:3", "protocol": "masked", "sigma": 1.0, "observer": ["0", "1"]},
        {"graph": "regular:60,6", "protocol": "shuffle", "rounds": 9, "epsilon0": 1.0},
        {"graph": "complete:6", "protocol": "token", "steps": 12, "sigma": 4.0, "observer": ["0"]},
        {"graph": "ring:6", "protocol": "randomized", "steps": 6, "sigma": 4.0, "observer": ["0"]},
    ],
)
def test_every_family_has_a_planner(state):
    """What it finds are settings of the protocol at hand: the page can show them."""
    explorer = Explorer()
    epsilon = 0.5 if state["protocol"] == "shuffle" else 2.0
    found = explorer.plan(state, epsilon, only_noise=state["protocol"] == "randomized")
    known = {one["name"] for one in controls(CATALOGUE[state["protocol"]].way(state["graph"]))}
    assert set(found["settings"]) <= known
    turned = {"graph": state["graph"], "protocol": state["protocol"], **found["settings"]}
    turned |= {"observer": state["observer"]} if "observer" in state else {}
    told = explorer.account(turned)
    assert told["worst"] <= epsilon or told["claim"] == "estimate"


def test_a_study_to_begin_with(tmp_path):
    path = tmp_path / "study.toml"
    task = Task(kind="mean", column="m", bounds=(0, 1))
    Study.plan("waits", task, ["ann", "bob", "cy"], graph="ring:3", epsilon=1.0, delta=1e-6).write(path)
    explorer = Explorer(Study.read(path))
    told = explorer.account(explorer.first)
    assert told["worst"] == pytest.approx(1.0, rel=1e-3)
    assert told["worst"] <= 1.0
    assert explorer.network(explorer.first)["labels"] == ["ann", "bob", "cy"]
    two = explorer.first | {"observer": ["bob", "cy"]}
    assert "-o 1 -o 2" in explorer.words(two)["command"]  # on ring:3, parties have numbers
    assert explorer.edges(two)["text"].splitlines()[1] == "ann,bob"
    rows = explorer.account(two)["study_errors"]["rows"]  # times the best curator's error
    assert [row["way"] for row in rows] == ["local DP", "local DP", "this study", "trusted curator", "trusted curator"]
    gaussian = [row["times"] for row in rows if row["law"] != "Laplace noise"]
    assert gaussian[0] > gaussian[1] > gaussian[2] > rows[-1]["times"] == 1
    assert "study_errors" not in explorer.account(two | {"sigma": 9.0})  # another protocol than the study's


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scheduler": "tcp://127.0.0.1:1"}, "'scheduler' is no setting of gossip"),
        ({"plot": "out.png"}, "'plot' is no setting"),
        ({"engine": "dask"}, "'engine' is no setting"),
        ({"steps": 5}, "'steps' is no setting of gossip"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"sigma": "much"}, "sigma"),
        ({"rounds": 2.5}, "rounds"),
        ({"observer": ["99"]}, "99"),
        ({"delta": 2.0}, "delta"),
        ({"graph": "complete:30000"}, "450,000,000 links"),
        ({"graph": "hypercube:60"}, "parties"),
        ({"graph": "/etc/passwd"}, "no graph that the studio knows by name"),
        ({"graph": "../study.toml"}, "no graph that the studio knows by name"),
        ({"graph": "ring:5+/etc/passwd"}, "no graph that the studio knows by name"),
        ({"graph": "@0000"}, "upload the file again"),
        ({"graph": ""}, "graph is missing"),
        ({"protocol": "banana"}, "unknown protocol 'banana'"),
    ],
)
def test_nonsense_is_refused(change, words):
    explorer = Explorer()
    state = GOSSIP | {"observer": ["0"]} | change
    with pytest.raises(NetdpError, match=words):
        explorer.account(state)


@pytest.mark.parametrize("name", ["varying", "push-sum", "local", "token"])
def test_no_way_round_the_limits(name):
    """Protocols that build their graph themselves are no way to build a huge one."""
    state = state_of(name) | {
        "graph": {"varying": "ring:8+hypercube:40", "local": "complete:99999999"}.get(name, "hypercube:40")
    }
    with pytest.raises(InvalidValue, match="the studio shows up to"):
        Explorer().account(state)


def test_every_setting_has_a_control():
    kinds = set()
    for entry in protocols().values():
        for one in (one for way in entry["ways"].values() for one in way["controls"]):
            assert one["words"]
            assert not one["required"] or one["kind"] == "number", one
            kinds.add(one["kind"])
    assert kinds == {"switch", "choice", "text", "number"}


def test_choices_are_those_that_protocols_take():
    """A word that is offered is no unknown word; what a protocol refuses, it refuses for another reason."""
    explorer = Explorer()
    for name, entry in protocols().items():
        for one in entry["ways"].get(entry["example"]["graph"].partition(":")[0], entry["ways"][""])["controls"]:
            refusals = [_refusal(explorer, state_of(name) | {one["name"]: choice}) for choice in one.get("choices", ())]
            assert not [words for words in refusals if "unknown" in words], (name, one["name"])


def _refusal(explorer, state):
    try:
        explorer._settled(state)
    except NetdpError as refusal:
        return str(refusal)
    return ""


def test_all_pairs_are_what_single_observers_learn():
    """Whatever the order in which parties are shown."""
    explorer, state = Explorer(), GOSSIP | {"graph": "geometric:30,0.3,seed=2"}
    told = explorer.pairs(state)
    assert told["complete"]
    assert sorted(told["parties"]) == list(range(30))
    assert told["parties"] != list(range(30))  # linked parties stand beside each other
    for v in (0, 7):
        column = [row[told["parties"].index(v)] for row in told["epsilon"]]
        alone = explorer.account(state | {"observer": [str(v)]})["epsilon"]
        for u, shown in zip(told["parties"], column, strict=True):
            assert (shown is None) == (alone[u] is None) == (u == v)
            assert u == v or alone[u] * (1 - 1e-9) <= shown <= 1.01 * alone[u]  # rounded up


def test_no_picture_of_pairs_that_are_alike():
    with pytest.raises(Unsupported, match="all pairs are alike"):
        Explorer().pairs({"graph": "ring:9", "protocol": "masked", "sigma": 1.0})


def test_a_network_too_large_for_everybody_is_planned_for_the_one_who_looks(monkeypatch):
    monkeypatch.setattr("netdp.protocols.target.MAX_EVERYBODY", 20)
    explorer, state = Explorer(), GOSSIP | {"graph": "karate", "observer": ["11"]}
    found = explorer.plan(state, 0.5, only_noise=True)
    assert found["holds"] == "against party 11 only: the network is too large to look at everybody"
    assert explorer.account(state | found["settings"])["worst"] <= 0.5
    with pytest.raises(Unsupported, match="press “Only the noise”"):
        explorer.plan(state, 0.5, only_noise=False)
