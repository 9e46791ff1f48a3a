"""The report on a study: what it says of every kind of study, and that nothing foreign gets into it or out of it."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from netdp.errors import InvalidValue, NetdpError
from netdp.families import KINDS
from netdp.peers.study import Study, Task
from netdp.peers.study.scaling import ScalingTask
from netdp.peers.study.training import Training
from netdp.privacy.wording import readable
from netdp.report.study import summary_html, write_report
from netdp.report.study.accuracy import COMPANY, OPEN
from netdp.report.study.facts import UNKNOWN, enforced, report_facts
from netdp.report.study.page import report_page

DOCS = Path(__file__).parents[2] / "docs"
MEAN = Task(kind="mean", column="x", bounds=(0, 120))
BINS = Task(kind="histogram", column="x", bounds=(0, 120), bins=4)
FEATURE = {"name": "age", "range": [20, 60]}
RECORDS = Training(features=[FEATURE], label="ill", classes=["no", "yes"], max_records=50, held_out=0.1)
PARTIES = Training(
    features=[{**FEATURE, "centre": 30, "scale": 5}], label="ill", classes=["no", "yes"], unit="party", held_out=0.1
)
WHOLE = PARTIES.model_copy(update={"held_out": 0.0})
COLUMNS = ScalingTask(features=[FEATURE], max_records=50)
STUDIES = {
    "masked-sum": {"task": MEAN, "colluders": 2, "attempts": 2, "absent": 1},
    "ring-sum": {"task": MEAN},
    "ring-histogram": {"task": BINS},
    "walk-sum": {"task": MEAN},
    "walk-histogram": {"task": BINS},
    "gossip": {"task": MEAN, "graph": "ring:5"},
    "randomized-gossip": {"task": MEAN},
    "shuffle": {"task": BINS, "colluders": 0},
    "masked-descent": {"task": RECORDS, "iterations": 5, "sampling": 0.5},
    "gossip-descent": {"task": WHOLE, "graph": "ring:5", "iterations": 5},
    "walk-descent": {"task": WHOLE, "steps": 10},
    "scaling": {"task": COLUMNS, "kind": "masked-sum"},
}
"""One study of every kind, and one that only scales columns."""
MORE = {
    "records": {"task": MEAN.model_copy(update={"unit": "record", "max_records": 9}), "kind": "masked-sum"},
    "a variance": {"task": Task(kind="variance", column="x", bounds=(0, 1)), "kind": "masked-sum", "spread": "average"},
    "walks some miss": {"task": MEAN, "kind": "walk-sum", "absent": 1, "attempts": 2},
    "walks on a graph": {"task": MEAN, "kind": "walk-sum", "graph": "ring:5"},
    "answers some miss": {"task": BINS, "kind": "ring-histogram", "attempts": 2, "absent": 1},
    "shuffled numbers": {"task": MEAN, "kind": "shuffle", "colluders": 1, "absent": 1, "attempts": 2},
    "single reports": {"task": BINS, "kind": "shuffle", "colluders": 0, "reporting": "single"},
    "through a server": {"task": BINS, "kind": "shuffle", "colluders": 0, "cover": 12, "rounds": 4},
    "a Laplace ring": {"task": MEAN, "kind": "ring-sum", "law": "laplace"},
    "a value per period": {
        "task": MEAN.model_copy(update={"period": "m", "periods": ("1", "2")}),
        "kind": "ring-sum",
        "graph": "ring:5",
    },
    "accelerated gossip": {"task": MEAN, "kind": "gossip", "graph": "ring:5", "accelerated": True},
    "links that change": {"task": MEAN, "kind": "gossip", "edge_probability": 0.6},
    "directions": {"task": Task(kind="direction", columns=("x", "y")), "kind": "shuffle", "colluders": 0},
    "parties train": {"task": PARTIES, "kind": "masked-descent", "iterations": 5},
}
"""Studies that say other things."""


def planned(name, **changes):
    options = {"graph": "complete:5", "kind": name} | {**STUDIES, **MORE}[name] | changes
    task, called = options.pop("task"), options.pop("name", "a study")
    return Study.plan(called, task, [f"p{u}" for u in range(5)], epsilon=2.0, delta=1e-6, **options)


@pytest.fixture(scope="module")
def drafts():
    """Studies by name, each planned once."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = planned(name)
        return made[name]

    return get


class Page(HTMLParser):
    """A page taken apart: its elements, whether they are closed in order, and its text."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.words, self.wrong = [], [], [], [], []
        self.feed(source)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def made(study, path=Path("study.toml"), **options):
    said = report_facts(study, path, **options)
    source = report_page(study, said)
    return said, source, Page(source)


def plain(text):
    """A text as the page's words read: exponents are raised, blanks are single."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", [*STUDIES, *MORE])
def test_every_kind_of_study_is_told_in_full(drafts, name):
    study = drafts(name)
    said, source, page = made(study)
    json.dumps(said, allow_nan=False)
    assert (page.wrong, page.open) == ([], [])
    text = page.text
    assert study.name in text
    assert study.hash.hex() in text
    assert said["how"] in text
    for k in {study.running.least_colluders, study.privacy.colluders}:
        loss = study.promise(k)
        row = next(row for row in said["losses"] if row["colluders"] == k)
        assert (row["epsilon"], row["claim"]) == (loss.worst_epsilon(1e-6), loss.claim.value)
        assert readable(row["epsilon"]) in text
    assert f"ε ≤ {study.privacy.epsilon:g}" in text
    promise = study.promise()
    assert promise.assumptions
    for line in promise.assumptions:
        assert plain(line) in text, line
        assert enforced(line) is not UNKNOWN, line
    for line in promise.references:
        assert plain(line) in text
    assert COMPANY[study.settings.kind].malicious in text
    for part in ("losses", "meaning", "company", "accuracy", "network", "rests", "parties", "about"):
        assert ("section", "id", part) in page.attributes
    assert ("section", "id", "happened") not in page.attributes
    assert ("section", "id", "audit") not in page.attributes
    assert len(source) < 100_000


def test_every_kind_is_among_them():
    assert set(KINDS) <= set(STUDIES)
    assert set(COMPANY) == set(KINDS)


@pytest.mark.parametrize("name", ["masked-sum", "shuffle", "masked-descent"])
def test_the_page_runs_nothing_and_fetches_nothing(drafts, name):
    _, source, page = made(drafts(name))
    assert not {"script", "img", "link", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    assert [tag for tag, attribute, _ in page.attributes if attribute == "style" or attribute.startswith("on")] == []
    assert [value for _, attribute, value in page.attributes if attribute == "href" and not value.startswith("#")] == []
    assert "http" not in source.replace("http-equiv", "")
    style = re.search("<style>(.*?)</style>", source, re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style
    policy = next(
        value for tag, attribute, value in page.attributes if attribute == "content" and "default-src" in value
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    ids = [value for _, attribute, value in page.attributes if attribute == "id"]
    assert len(set(ids)) == len(ids)
    for _, attribute, value in page.attributes:
        if attribute == "href":
            assert value[1:] in ids
        if attribute in ("aria-labelledby", "aria-describedby"):
            assert set(value.split()) <= set(ids)
    assert source.count("<table") == source.count("<caption>") > 4
    scopes = [value for tag, attribute, value in page.attributes if (tag, attribute) == ("th", "scope")]
    assert len(scopes) == page.tags.count("th")
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(b - a for a, b in pairwise(levels)) == 1


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"


@pytest.mark.parametrize("task", [
    Task(kind="mean", column=HOSTILE, bounds=(0, 1)),
    Task(kind="histogram", column=HOSTILE, categories=[[HOSTILE, "</style></title>"]]),
    ScalingTask(features=[{"name": HOSTILE, "range": [0, 1]}], max_records=5),
    Training(features=[{"name": HOSTILE, "range": [0, 1]}], label=f"y{HOSTILE}", classes=[HOSTILE, "no"], max_records=5),
])  # fmt: skip
def test_hostile_names_stay_text(task):
    more = {"iterations": 3, "kind": "masked-descent"} if isinstance(task, Training) else {}
    study = Study.plan(HOSTILE, task, list("abcd"), graph="ring:4", epsilon=1.0, delta=1e-6, **more)
    _, _, page = made(study)
    assert (page.wrong, page.open) == ([], [])
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [one for one in page.attributes if one[1].startswith("on") or one[1] == "src"]
    assert plain(HOSTILE) in page.text
    short = Page(summary_html(study))
    assert (short.wrong, short.open) == ([], [])
    assert not {"script", "img"} & set(short.tags)
    assert plain(HOSTILE) in short.text


def test_a_broken_promise_is_loud(drafts):
    study = drafts("masked-sum")
    bad = study.replace(settings={"sigma": study.settings.sigma / 2})
    said, _, page = made(bad)
    assert not said["kept"]
    assert "THE PROMISE IS NOT KEPT" in page.text
    assert "The promise is NOT kept" in page.text
    assert ("p", "class", "alarm") in page.attributes


def test_a_promise_that_cannot_be_computed_is_said_not_to_be(drafts, monkeypatch):
    monkeypatch.setattr("netdp.report.study.facts.losses_of", lambda *_: ({}, ["2 together: too many to look at"]))
    said, _, page = made(drafts("ring-sum"))
    assert said["losses"] == []
    assert not said["kept"]
    assert "too many to look at" in page.text
    assert "The promise is NOT kept" in page.text


def test_a_weak_promise_is_said_to_be_one():
    study = Study.plan("weak", MEAN, list("abcd"), graph="ring:4", epsilon=20.0, delta=1e-6)
    assert "hardly a promise" in made(study)[2].text


def test_a_loss_never_looks_larger_than_a_promise_that_it_keeps():
    """0.944838… rounded up to three digits would be 0.945, and the promise 0.944839 look broken."""
    study = Study.plan("odd", MEAN, list("abcd"), graph="ring:4", epsilon=0.944839, delta=1e-6)
    certified = study.promise().worst_epsilon(1e-6)
    _, _, page = made(study)
    shown = [float(found) for found in re.findall(r"ε = (0\.94\d*) to the same", page.text)]
    assert shown
    assert all(certified <= value <= 0.944839 for value in shown)


def test_what_everybody_else_learns_is_told_or_said_not_to_be(drafts):
    said, _, page = made(drafts("masked-sum"))
    most = max(row["colluders"] for row in said["losses"])
    assert most == drafts("masked-sum").smallest_roster - 1
    assert f"against a single party: ε = {readable(said['losses'][-1]['epsilon'])}" in page.text
    assert "is not stated here" in made(drafts("gossip"))[2].text


def test_the_picture_has_the_certified_numbers(drafts):
    study = drafts("masked-sum")
    said, source, _ = made(study)
    assert [k for k, _ in said["curve"]] == [1, 2, 3]
    for k, epsilon in said["curve"]:
        assert epsilon == study.promise(k).worst_epsilon(1e-6)
        assert f"{k} together: ε = {readable(epsilon)}, certified" in source


def test_two_hundred_parties_are_drawn_without_their_names_and_forty_with():
    for n, named in ((40, True), (200, False)):
        names = [f"ward{u}" for u in range(n)]
        study = Study.plan("many", MEAN, names, graph=f"regular:{n},4,seed=1", epsilon=1.0, delta=1e-6, colluders=5)
        said, source, page = made(study)
        drawn = source[source.index('aria-labelledby="network-title') :]
        drawn = drawn[: drawn.index("</svg>")]
        assert drawn.count("<circle") == n
        assert drawn.count("<text") == (n if named else 0)
        assert len(said["curve"]) <= 20
        assert all(name in page.text for name in names)
        assert len(source) < 150_000


def test_links_that_are_too_many_are_not_drawn_and_that_is_said():
    study = Study.plan(
        "all", MEAN, [f"p{u}" for u in range(120)], graph="complete:120", epsilon=1.0, delta=1e-6, colluders=5
    )
    _, source, page = made(study)
    assert "So many links are not drawn" in page.text
    assert 'class="link' not in source


def test_the_comparison_does_not_leave_out_a_better_rival(drafts):
    """For one number, Laplace noise needs less than Gaussian noise, and the report says so."""
    rows = report_facts(drafts("masked-sum"), Path("s.toml"))["accuracy"]["rows"]
    local = {row["law"]: row["noise"] for row in rows if row["way"] == "local DP"}
    assert local["Laplace noise"] < local["Gaussian noise"]
    assert local["Laplace noise"] == pytest.approx(2**0.5 * 2 / 2.0 * 5**0.5)
    counts = report_facts(drafts("shuffle"), Path("s.toml"))["accuracy"]["rows"]
    assert "randomized response" in {row["law"] for row in counts if row["way"] == "local DP"}


def test_it_says_when_and_with_what_it_was_written(drafts):
    said, _, page = made(drafts("ring-sum"), now=datetime(2030, 1, 2, 3, 4, tzinfo=UTC))
    assert "Written 2030-01-02, 03:04 UTC" in page.text
    for name in ("netdp", "Python", "numpy", "scipy", "numba", "cryptography", "grpcio", "platform"):
        assert f"{name} {said['versions'][name]}" in page.text


def test_a_file_appears_whole_or_not_at_all(drafts, tmp_path, monkeypatch):
    study, target = drafts("masked-sum"), tmp_path / "report.html"
    target.write_text("before")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("netdp.report.style.os.replace", fails)
    with pytest.raises(NetdpError, match="No space left"):
        write_report(study, tmp_path / "study.toml", target)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "before"
    with pytest.raises(InvalidValue, match="does not exist"):
        write_report(study, tmp_path / "study.toml", tmp_path / "nowhere" / "report.html")


# ── the words of the documents ────────────────────────────────────────────────────────────────────────────────────────


def threat_model():
    text = (DOCS / "threat-model.md").read_text("utf-8")
    return {part.partition("\n")[0].strip(): part for part in text.split("\n## ")[1:]}


@pytest.mark.parametrize("kind", KINDS)
def test_against_whom_is_what_the_threat_model_says(kind):
    rows = [line.split("|")[1:4] for line in threat_model()[kind].splitlines() if line.startswith("| ")]
    against = next(who for promised, who, _ in rows if "ε of the study" in promised)
    assert COMPANY[kind].against in against
    assert ("The same ε" in COMPANY[kind].malicious) == (COMPANY[kind].against == "malicious")


def test_what_is_open_is_what_the_threat_model_leaves_open():
    part = threat_model()["All protocols"]
    assert re.findall(r"^- \*(.+?)\.\*", part, re.MULTILINE) == list(OPEN)


def test_an_assumption_that_nobody_knows_is_no_ones_code():
    assert "code" not in enforced("every party is a good person").by


# ── the short form ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", STUDIES)
def test_the_short_form_is_sound_html(drafts, name):
    study = drafts(name)
    page = Page(summary_html(study))
    assert (page.wrong, page.open) == ([], [])
    assert page.tags[0] == "div"
    assert study.name in page.text
    assert f"ε ≤ {study.privacy.epsilon:g}" in page.text
    if study.running.depends_on_size_only:
        assert readable(study.promise().worst_epsilon(1e-6)) in page.text
    assert unescape(page.text) == page.text
