"""`netdp report`: one command, one file; refusals come first; the numbers are those of the other commands."""

import json
import shutil
import subprocess

import pytest

from netdp.audit.audits import audit
from netdp.peers.study import Study
from netdp.peers.study.task import Task

NAMES = ("ann", "bob", "cy", "dee")


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A draft for four parties, and one table with everybody's number; its folder is the one we are in."""
    monkeypatch.chdir(tmp_path)
    task = Task(kind="mean", column="x", bounds=(0, 10))
    draft = Study.plan(
        "four", task, NAMES, graph="ring:4", epsilon=2.0, delta=1e-6, timing={"gather": 120.0, "patience": 60.0}
    )
    draft.write(tmp_path / "study.toml")
    rows = [f"{name},{u + 1}" for u, name in enumerate(NAMES)]
    (tmp_path / "numbers.csv").write_text("\n".join(["party,x", *rows]) + "\n", "utf-8")
    return tmp_path / "study.toml"


def test_a_draft_is_reported_and_nothing_is_overwritten(run, study, tmp_path):
    status, out, err = run("report", "study.toml")
    assert (status, err) == (0, "")
    assert "report.html" in out
    first = (tmp_path / "report.html").read_bytes()
    assert first.startswith(b"<!doctype html>")
    assert b"A draft: it cannot be signed yet" in first
    status, _, err = run("report", "study.toml")
    assert status == 2
    assert "report.html is there already" in err
    assert (tmp_path / "report.html").read_bytes() == first
    status, _, _ = run("report", "study.toml", "--force")
    assert status == 0
    assert {path.name for path in tmp_path.iterdir()} == {"study.toml", "numbers.csv", "report.html"}


def test_json_says_what_the_page_says_and_what_explain_computes(run, study):
    status, out, _ = run("report", "study.toml", "-o", "out.html", "--json")
    assert status == 0
    said = json.loads(out)
    assert said["path"] == "out.html"
    status, out, _ = run("study", "explain", "study.toml", "--json")
    explained = json.loads(out)
    for key in ("hash", "question", "protected", "epsilon", "claim", "assumptions", "promised", "kept"):
        assert said[key] == explained[key]
    assert {str(row["colluders"]): row["epsilon"] for row in said["losses"]} == explained["epsilon"]


@pytest.mark.parametrize(("words", "problem"), [
    (["--with-answer"], "--run"),
    (["--audit", "a.json", "--audit-run"], "not both"),
    (["--audit", "a.json"], "a.json: cannot be read"),
    (["--run", "nowhere"], "is no folder"),
    (["-o", "nowhere/r.html"], "does not exist"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_and_nothing_is_written(run, study, tmp_path, words, problem):
    status, out, err = run("report", "study.toml", *words)
    assert (status, out) == (2, "")
    assert problem in err
    assert not list(tmp_path.glob("*.html"))


def test_no_study_no_report(run, tmp_path):
    (tmp_path / "bad.toml").write_text("name = 3\n")
    for path in ("none.toml", "bad.toml"):
        status, _, err = run("report", str(tmp_path / path), "-o", str(tmp_path / "r.html"))
        assert status == 2
        assert path in err


def test_a_real_run_and_its_audit(run, study, tmp_path):
    """Four processes, their ledgers, an audit on the spot: the report has the numbers of `up` and of `ledger`."""
    status, out, err = run("up", "study.toml", "--folder", "homes", "--json")
    assert status == 0, err
    up = json.loads(out)
    status, out, err = run("audit", "study.toml", "--trials", "2000", "--json")
    assert status == 0, err
    (tmp_path / "audit.json").write_text(out)
    status, out, err = run("report", "study.toml", "--run", "homes", "--audit", "audit.json", "-o", "r.html", "--json")
    assert status == 0, err
    said, page = json.loads(out), (tmp_path / "r.html").read_text("utf-8")
    assert said["hash"] == up["study"]["hash"]  # that of the study that ran, not of the draft
    assert said["happened"]["spent"]["1"] == up["guarantee"]["spent_epsilon"]["1"]
    assert said["happened"]["roster"] == list(NAMES)
    assert {one["ledger"] for one in said["happened"]["parties"].values()} == {"in order"}
    assert said["signatures"]["all"]
    assert said["audit"]["ok"]
    value = up["result"]["value"]
    assert said["happened"]["answer"] is None
    assert str(value) not in out
    assert str(value) not in page
    assert "The answer is not shown in this report" in page
    status, out, _ = run("report", "homes/study.toml", "--run", "homes/bob", "--with-answer", "-o", "b.html")
    assert status == 0
    assert f"{value:,.4g}" in (tmp_path / "b.html").read_text("utf-8")


def test_an_audit_on_the_spot(run, study, tmp_path, monkeypatch):
    from netdp.peers.recordings import audit as simulated

    quick = audit
    monkeypatch.setattr(
        simulated, "audit", lambda *given, **options: quick(*given, trials=2_000, distances=False, **options)
    )
    status, out, err = run("report", "study.toml", "--audit-run", "--json")
    assert status == 0, err
    assert json.loads(out)["audit"]["of"] == "simulation"
    assert "What an audit found" in (tmp_path / "report.html").read_text("utf-8")


def test_a_browser_has_nothing_to_complain_about(run, study, tmp_path):
    """The content security policy allows the page's own style, and the page needs nothing else; it prints."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine to open the report in")
    assert run("report", "study.toml")[0] == 0
    plain = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    page = (tmp_path / "report.html").as_uri()
    quiet = subprocess.run(
        [*plain, "--enable-logging=stderr", "--dump-dom", page], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in quiet.stderr
    spoilt = tmp_path / "spoilt.html"  # the same page with one more style, which its policy must refuse
    spoilt.write_text(
        (tmp_path / "report.html").read_text("utf-8").replace("</head>", "<style>p{color:red}</style></head>")
    )
    loud = subprocess.run(
        [*plain, "--enable-logging=stderr", "--dump-dom", spoilt.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Content Security Policy" in loud.stderr
    printed = tmp_path / "report.pdf"
    subprocess.run([*plain, f"--print-to-pdf={printed}", page], capture_output=True, timeout=120, check=True)
    assert printed.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(run, study, tmp_path, width, scheme):
    """No finding of axe-core, on a desk and on a phone, light and dark; and the page is never wider than the screen."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine to open the report in")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="it carries axe-core")
    assert run("report", "study.toml")[0] == 0
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
        ).new_page()
        page.goto((tmp_path / "report.html").as_uri())
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        chromium.close()
