"""The picture of a run: never below the ledger, nothing from outside, and what became of everybody."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.peers.ledger.entries import entry_of, spent_by_size, total
from netdp.peers.outcome import UpResult
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.protocols import Transcript
from netdp.report.run import coalition_sizes, contributions, heard, learned, page_data, save_run_picture, standing

MEAN = Task(kind="mean", column="x", bounds=(0, 10))
NAMES = [f"p{u}" for u in range(8)]


def planned(kind="masked-sum", graph="hypercube:3", **terms):
    return Study.plan("eight", MEAN, NAMES, graph=graph, epsilon=1.0, delta=1e-6, kind=kind, **terms)


STUDY = planned(colluders=2, attempts=3, absent=3)


def spent(study, rosters, me):
    entries = [entry_of(study, i, roster, me) for i, roster in enumerate(rosters, start=1)]
    sizes = sorted({1, study.privacy.colluders})
    epsilons = {str(k): float(total(entries, k, "party").epsilon(1e-6)) for k in sizes}
    told = {"delta": 1e-6, "epsilon": epsilons, "contributions": len(rosters), "unit": "party"}
    return told | {"ledger": spent_by_size(entries, sizes, "party", 1e-6)}


def outcome(study, u, rosters, roster, attempt=1, sent=()):
    """What party u tells that contributed to `rosters` and holds the answer of `attempt`, among `roster`."""
    told = {"study": study.name, "party": study.names[u], "contributed": len(rosters), "sent": [*sent]}
    told["spent"] = spent(study, rosters, u)
    if roster is None:
        return told | {"ok": False, "reason": "too few came back"}
    names = [study.names[v] for v in roster]
    answer = study.answer([0.5], len(roster))
    return told | {"ok": True, "attempt": attempt, "roster": names, "total": [0.5], "digest": "ab", "answer": answer}


def run_of(study, outcomes, **more):
    fields = {
        "restarts": {},
        "gone": {},
        "notes": (),
        "seconds": {"all": 2.0, "listening": 0.5, "answered": 1.5},
    } | more
    return UpResult(study, {study.names[u]: told for u, told in outcomes.items()}, **fields)


def flooded(study, attempt=1):
    return {u: [[attempt, t, v] for t in range(3) for v in study.neighbours(u)] for u in range(study.n)}


def plain_run(study=STUDY):
    everybody = tuple(range(study.n))
    sent = flooded(study)
    return run_of(study, {u: outcome(study, u, [everybody], everybody, 1, sent[u]) for u in everybody})


def eventful_run():
    """Attempt 1 among all, attempt 3 gives the answer among six; 6 was in the first only, 7 died; 1 was started again."""
    everybody, middle, six = tuple(range(8)), (0, 1, 2, 3, 4, 6), tuple(range(6))
    sent = flooded(STUDY, 3)
    outcomes = {u: outcome(STUDY, u, [everybody, middle, six], six, 3, sent[u]) for u in range(5)}
    outcomes[5] = outcome(STUDY, 5, [everybody, six], six, 3, sent[5])
    outcomes[6] = outcome(STUDY, 6, [everybody], six, 3, sent[6])
    return run_of(STUDY, outcomes, gone={"p7": "killed </script><!-- x"}, restarts={"p1": 2})


def test_what_k_learned_is_what_the_ledger_says_when_all_took_part():
    found = learned(plain_run())
    assert found.sizes == (1, 2, 3, 4, 5, 6, 7)
    entry = entry_of(STUDY, 1, range(8), 0)
    for k, epsilon in zip(found.sizes, found.epsilon, strict=True):
        assert epsilon == pytest.approx(float(total([entry], k, "party").epsilon(1e-6)), rel=1e-12)
    assert found.epsilon[-1] == pytest.approx(found.local, rel=1e-9)  # all others together: as local DP
    assert found.curator < found.epsilon[0] < found.epsilon[1] < STUDY.privacy.epsilon


def test_where_a_roster_is_not_known_the_picture_says_no_less_than_the_ledger():
    result = eventful_run()
    found = dict(zip(learned(result).sizes, learned(result).epsilon, strict=True))
    for k in (1, 2):
        recorded = max(told["spent"]["epsilon"][str(k)] for told in result.outcomes.values())
        assert recorded <= found[k] <= STUDY.privacy.epsilon * 1.0001
    assert found[2] < found[6] < found[7]  # up to all others, those outside the last roster included
    rosters = {name: sorted(len(entry.roster) for entry in contributions(result, name)) for name in result.outcomes}
    assert rosters["p0"] == [5, 6, 8]  # the one between is not known: the smallest stands for it
    assert rosters["p5"] == [5, 6]
    assert rosters["p6"] == [5]
    assert "gone" in learned(result).note


def test_a_party_that_only_listened_has_lost_nothing_and_one_without_answer_what_it_published():
    six = tuple(range(6))
    outcomes = {u: outcome(STUDY, u, [six], six, 2) for u in six}
    result = run_of(STUDY, outcomes | {6: outcome(STUDY, 6, [], six, 2), 7: outcome(STUDY, 7, [], six, 2)})
    assert contributions(result, "p6") == []
    ended = run_of(STUDY, {u: outcome(STUDY, u, [tuple(range(8))], None) for u in range(8)})
    assert learned(ended).epsilon[0] >= ended.outcomes["p0"]["spent"]["epsilon"]["1"] > 0
    nobody = run_of(STUDY, {u: outcome(STUDY, u, [], None) for u in range(8)})
    assert set(learned(nobody).epsilon) == {0.0}


def test_sizes_are_few_and_have_both_ends():
    assert coalition_sizes(24) == list(range(1, 25))
    many = coalition_sizes(199)
    assert len(many) <= 24
    assert (many[0], many[-2], many[-1]) == (1, 198, 199)


def test_nobody_may_hold_what_no_chain_of_sends_brought():
    rounds = heard(plain_run().transcript)
    assert rounds == [[4] * 8, [7] * 8, [8] * 8]  # hypercube(3): itself and those within one, two, three links
    backwards = Transcript(3, (np.array([[1, 2]]), np.array([[0, 1]])), np.array([0, 1]))
    assert heard(backwards) == [[1, 1, 2], [1, 2, 2]]  # 0's number comes to 1 too late to go on to 2


def test_what_became_of_everybody():
    result = eventful_run()
    assert standing(result) == ["answered"] * 6 + ["outside", "gone"]
    ended = run_of(STUDY, {0: outcome(STUDY, 0, [], None)}, gone=dict.fromkeys(NAMES[1:], "refused"))
    assert standing(ended) == ["ended"] + ["gone"] * 7


@pytest.mark.parametrize(("kind", "graph"), [("ring-sum", "ring:8"), ("gossip", "hypercube:3")])
def test_other_protocols_show_what_the_ledgers_say_and_claim_nothing_about_more(kind, graph, tmp_path):
    study = planned(kind, graph)
    everybody = tuple(range(8))
    told = {"delta": 1e-6, "epsilon": {"1": 0.75}, "contributions": 1, "unit": "party"}
    told["ledger"] = {"entries": 1, "epsilon": {"1": 0.8}, "fixed": {"1": 0.75}}
    outcomes = {
        u: outcome(STUDY, u, [everybody], everybody, 1, [[1, u, (u + 1) % 8]]) | {"spent": told} for u in everybody
    }
    result = run_of(study, outcomes)
    found = learned(result)
    assert (found.sizes, found.epsilon) == ((1,), (0.75,))
    assert found.note == "More than 1 together: not drawn here; each ledger says (netdp ledger show --against K)."
    assert page_data(result)["unbounded"]
    assert save_run_picture(result, tmp_path / "out.html").stat().st_size > 10_000


def in_the_browser(path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine to run the page's script in")
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path]
    page = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    return page, {
        key: unescape(re.search(rf'id="{key}"[^>]*>(.*?)</', page).group(1)) for key in ("told", "point", "title")
    }


def test_the_page_holds_all_of_it_and_fetches_nothing(tmp_path):
    result = eventful_run()
    page = save_run_picture(result, tmp_path / "out.html").read_text("utf-8")
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]
    outside = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert "http" not in outside
    assert "src=" not in outside
    assert page.count("</script>") == 1  # a reason that another party gave does not end the script
    assert "<!--" not in page
    data = json.loads(re.search(r"const data = (.*);\n", page).group(1).replace("<\\/", "</"))
    assert data["reasons"][7] == "killed </script><!-- x"
    assert (data["restarts"][1], data["promise"]) == (2, [2, 1.0])
    true = learned(result).epsilon
    assert all(t <= shown <= t * 1.0002 for t, shown in zip(true, data["epsilon"], strict=True))
    table = {name: (value, words) for name, value, words in data["rows"]}
    assert table["took part"] == ("6 of 8", "without p6, p7")
    assert table["restarted"] == ("2", "p1")
    assert table["attempts"][0] == "3"
    assert "upper" in data["claim"]
    assert len(data["assumptions"]) > 2


def test_the_page_works_in_a_browser(tmp_path):
    path = save_run_picture(eventful_run(), tmp_path / "out.html").as_uri()
    page, words = in_the_browser(f"{path}#round=2")
    assert words["told"].startswith("Round 2 of 3 (by how many links a contribution had crossed before): ")
    assert words["point"].startswith("Any 2 parties together learned at most ε = ")
    assert page.count("<circle") == 7
    assert "local DP, all publish once" in page
    _, words = in_the_browser(f"{path}#round=99")
    assert words["told"] == "In the end 7 of 8 parties hold the answer."


def test_a_still_picture(tmp_path):
    pytest.importorskip("matplotlib")
    for name, result in (("plain", plain_run()), ("eventful", eventful_run())):
        assert save_run_picture(result, tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InvalidValue, match=r"must end in \.png, \.svg, \.pdf or \.html"):
        save_run_picture(plain_run(), tmp_path / "out.gif")
