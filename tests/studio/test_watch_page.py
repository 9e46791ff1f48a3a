"""Watching in a real browser: a run that ended, one party of it, and one that begins while somebody looks."""

import subprocess
import sys
from pathlib import Path

import pytest

from netdp.peers.launch import party_process
from netdp.peers.study import Study
from netdp.studio.watch import Watch

from .browser import browser, complaints, needs_browser, serious, studio, until

sys.path.append(str(Path(__file__).parents[1] / "peers"))

import crew

pytestmark = needs_browser


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    one = crew.Crew(tmp_path_factory.mktemp("finished"), 4, "ring:4")
    one.run(target=party_process)
    return one


@pytest.fixture(scope="module")
def address(finished):
    with studio("--watch", str(finished.folder)) as given:
        yield given


def said(page):
    return page.execute_script("return document.querySelector('.watch-said')?.textContent || ''")


def text(page, selector):
    """In one step: the page may be building itself anew."""
    return page.execute_script("return document.querySelector(arguments[0])?.innerText || ''", selector)


def opened(page, address, expected="4 hold the answer"):
    page.get(address)
    until(lambda: said(page).startswith(expected))


def slide(page, place):
    page.execute_script(
        "const s = document.querySelector('.watch-slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
        place,
    )


def test_a_run_that_ended_can_be_looked_at_and_played(finished, address):
    with browser() as page:
        opened(page, address)
        assert text(page, ".watch-badge").lower() == "recorded"
        assert "in a real study nobody sees all this" in text(page, ".watch-head")
        names = [one.text for one in page.find_elements("css selector", ".watch-name")]
        assert names == list(finished.study.names)
        assert not [state for state in page.find_elements("css selector", ".watch-words") if state.text != "answered"]
        slide(page, 0)  # nobody has done anything then
        until(lambda: said(page).startswith("4 not there yet") or "starting" in said(page))
        page.execute_script(
            "const s = document.querySelector('.watch-controls select'); s.value = 1; s.dispatchEvent(new Event('change'))"
        )
        page.find_element("css selector", ".watch-play").click()
        until(lambda: said(page).startswith("4 hold the answer"), 120)
        assert complaints(page) == []


def test_the_bars_say_what_the_ledgers_say(finished, address):
    from selenium.webdriver.common.keys import Keys

    watch = Watch(finished.folder)
    spent, since = {}, watch.first()["next"]
    while len(spent) < 4:
        change = watch.changes(since) or {}
        since = change.get("next", since)
        spent |= change.get("spent", {})
    with browser() as page:
        opened(page, address)
        page.find_elements("css selector", ".watch-party")[2].send_keys(Keys.ENTER)
        until(lambda: text(page, ".watch-detail h3") == "p2")
        until(lambda: "ε spent by p2" in text(page, ".watch"))
        shown = [one.text for one in page.find_elements("css selector", ".watch-value b")]
        assert shown == [one["text"] for one in spent["p2"]["study"]]
        assert f"of {watch.first()['promised'][-1]['text']} promised" in text(page, ".watch")
        counted = {row.text.rsplit(" ", 1)[0] for row in page.find_elements("css selector", ".watch tr")}
        assert {"contributions", "votes", "greetings"} <= counted
        assert complaints(page) == []


def test_of_one_peer_only_its_own_is_on_the_page(finished):
    with studio("--watch", str(finished.home(1))) as address, browser() as page:
        opened(page, address, "1 holds the answer")
        assert "Only what p1 itself may see" in text(page, ".watch-head")
        assert "ε spent by p1" in text(page, ".watch")
        words = [one.text for one in page.find_elements("css selector", ".watch-words")]
        assert words == ["no link", "answered", "no link", "not seen from here"]
        page.find_elements("css selector", ".watch-party")[0].click()
        until(lambda: "is not seen from here" in text(page, ".watch-detail"))
        assert "Its ledger is its own." in text(page, ".watch")
        assert complaints(page) == []


def test_a_study_that_begins_while_somebody_looks(tmp_path):
    # a walk of so many steps takes seconds: a sum would be over before the page looks for the second time
    draft = Study.plan(
        "waits",
        crew.MEAN,
        ["ash", "elm", "oak"],
        graph="complete:3",
        epsilon=2.0,
        delta=1e-6,
        kind="walk-sum",
        steps=2000,
    )
    draft.write(tmp_path / "draft.toml")
    (tmp_path / "data.csv").write_text("party,x\nash,17\nelm,40\noak,71\n")
    with studio(str(tmp_path / "draft.toml"), "--watch", str(tmp_path / "up")) as address, browser() as page:
        opened(page, address, "Nothing")
        words = ["up", tmp_path / "draft.toml", "--data", tmp_path / "data.csv", "--folder", tmp_path / "up", "--json"]
        with subprocess.Popen([sys.executable, "-m", "netdp", *words], stdout=subprocess.DEVNULL) as running:
            seen = set()
            until(
                lambda: seen.add(text(page, ".watch-badge").lower()) or said(page).startswith("3 hold the answer"), 120
            )
            until(lambda: text(page, ".watch-badge").lower() == "recorded", 120)
            assert "live" in seen
            assert running.wait(300) == 0
        assert complaints(page) == []


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (400, False)])
def test_everybody_can_watch(address, width, dark):
    """No serious finding of an accessibility check, in light, dark and on a small screen; nothing wider than the screen."""
    with browser(width, 1000, dark=dark) as page:
        opened(page, address)
        page.find_elements("css selector", ".watch-party")[0].click()
        page.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        assert serious(page) == []
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth + 1")


def test_who_wants_no_motion_gets_none(address):
    with browser() as page:
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        )
        opened(page, address)
        slide(page, 500)
        until(lambda: "frames sent" in said(page))
        drawn = "return document.querySelector('.watch-canvas').toDataURL()"

        def still():
            before = page.execute_script(drawn)
            page.execute_async_script("setTimeout(arguments[0], 700)")
            return page.execute_script(drawn) == before

        until(still)  # the slider's own picture may be drawn late; messages that move would never be still
