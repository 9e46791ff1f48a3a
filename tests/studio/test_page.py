"""The page in a real browser: what it shows equals `netdp account --json`."""

import pytest

from netdp.privacy.wording import readable

from .browser import after, answers, browser, complaints, needs_browser, serious, studio, until

pytestmark = needs_browser


@pytest.fixture(scope="module")
def address():
    with studio() as given:
        yield given


@pytest.fixture
def page(address):
    with browser() as window:
        window.get(address)
        until(lambda: answers(window) >= 1)
        yield window
        assert complaints(window) == []


def find(page, name):
    return page.find_element("id", name)


CHANGE = "const one = document.getElementById(arguments[0]); one.value = arguments[1]; one.dispatchEvent(new Event('change'))"


def slide(page, name, share):
    """Move the slider of a setting, as a hand would: to a share of its length."""
    page.execute_script(
        "const s = document.querySelector(`[aria-label='${arguments[0]}, slider']`); s.value = s.max * arguments[1]; "
        "s.dispatchEvent(new Event('input'))", name, share,
    )  # fmt: skip


def choose(page, name, value):
    page.execute_script(CHANGE, name, value)


def click_party(page, number):
    """Click where the party is drawn."""
    from selenium.webdriver import ActionChains

    canvas = find(page, "network")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    x, y = page.execute_script("return (await import('/explore.js')).placeOf(arguments[0])", number)
    side = page.execute_script("return arguments[0].clientWidth", canvas)
    ActionChains(page).move_to_element_with_offset(canvas, x - side / 2, y - side / 2).click().perform()


def command(page):
    """The command line that the page offers, as words."""
    import shlex

    until(lambda: find(page, "copied").text.startswith("netdp account"))
    return shlex.split(find(page, "copied").text)[1:]


def same_as_the_command(page, netdp_json):
    """The headline, the table and every tooltip's number are what the offered command prints."""
    import time

    time.sleep(0.6)  # the command line follows the answer
    said = netdp_json(*command(page))
    epsilon = said["loss"]["epsilon"]
    shown = page.execute_script("return (await import('/explore.js')).shown()")
    assert shown == epsilon
    worst = max(e for e in epsilon if e is not None)
    assert find(page, "worst").text == f"ε = {readable(worst)}"
    return said


def test_a_slider_three_colluders_and_an_upload(page, netdp_json, tmp_path):
    """The page's main job, from the first picture to a network of one's own."""
    said = same_as_the_command(page, netdp_json)
    assert said["protocol"]["graph"]["name"] == "hypercube(6)"
    before = find(page, "worst").text
    after(page, lambda: slide(page, "masks", 0.6))
    said = same_as_the_command(page, netdp_json)
    assert said["protocol"]["masks"] > 1
    assert find(page, "worst").text != before
    for party in (5, 9, 17):
        after(page, lambda party=party: click_party(page, party))
    after(page, lambda: click_party(page, 0))  # no observer any more
    said = same_as_the_command(page, netdp_json)
    assert sorted(said["observers"]["parties"]) == [5, 9, 17]
    rows = page.find_elements("css selector", "#table tbody tr")
    assert rows[0].text.split()[1] == str(said["by_distance"][0]["parties"])
    assert readable(said["by_distance"][0]["losses"]["loss"]["epsilon"]) in rows[0].text
    file = tmp_path / "friends.csv"
    file.write_text("from,to\nann,bob\nbob,cy\ncy,dan\ndan,ann\nann,cy\n")
    after(page, lambda: find(page, "upload").send_keys(str(file)))
    assert "4 parties, 5 links" in find(page, "network-facts").text or "4 nodes" in find(page, "network-facts").text
    assert "friends.csv" in find(page, "copied").text or until(lambda: "friends.csv" in find(page, "copied").text)
    words = command(page)
    words[words.index("friends.csv")] = str(file)
    said = netdp_json(*words)
    assert page.execute_script("return (await import('/explore.js')).shown()") == said["loss"]["epsilon"]
    table = find(page, "table").text
    assert readable(said["epsilon"]) in table


def test_a_hostile_upload_leaves_the_page_as_it_was(page, tmp_path):
    before = find(page, "worst").text
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"\x1f\x8b not a graph")
    find(page, "upload").send_keys(str(bad))
    until(lambda: "compressed" in find(page, "trouble").text)
    assert find(page, "worst").text == before
    named = tmp_path / "named.csv"
    named.write_text('"<img src=x onerror=document.title=1>",bob\nbob,cy\n')
    after(page, lambda: find(page, "upload").send_keys(str(named)))
    assert page.title == "netdp studio"  # a name is text
    assert page.find_elements("css selector", "#names img, .tip img, table img") == []


def test_a_target_turns_the_sliders_by_itself(page, netdp_json):
    after(page, lambda: choose(page, "target", 0.5))
    said = same_as_the_command(page, netdp_json)
    assert said["epsilon"] <= 0.5
    assert float(find(page, "set-masks").get_attribute("value")) > 0
    assert "trusted curator" in find(page, "plan-options").text
    masks = float(find(page, "set-masks").get_attribute("value"))
    choose(page, "target", 0.25)  # leaving the box for a button: the button decides
    after(page, lambda: find(page, "only-noise").click())
    assert float(find(page, "set-masks").get_attribute("value")) == masks
    assert same_as_the_command(page, netdp_json)["epsilon"] <= 0.25
    assert "every single party" in find(page, "plan-words").text
    after(page, lambda: slide(page, "sigma", 0.2))  # what was planned is not what is shown any more
    assert find(page, "plan-words").text == ""


def test_an_estimate_is_not_called_a_bound(page):
    assert "can learn at most" in find(page, "headline").text
    after(page, lambda: choose(page, "protocol", "randomized"))
    assert "at most" not in find(page, "headline").text
    assert "it is NOT a bound" in find(page, "claim").text
    assert "certified" not in find(page, "answer").text


def test_errors_are_compared_in_as_many_dimensions(page):
    """Local DP's error is √n times a curator's, of one number and of ten."""
    after(page, lambda: choose(page, "protocol", "masked"))
    page.execute_script("document.getElementById('more').open = true")
    after(page, lambda: choose(page, "set-dimension", 10))
    assert "×8.00" in find(page, "errors").text  # 64 parties
    assert "×1.0" in find(page, "errors").text.split("as chosen")[1]


@pytest.mark.parametrize("protocol", ["masked", "token", "shuffle", "descent"])
def test_other_protocols(page, netdp_json, protocol):
    after(page, lambda: choose(page, "graph-dimension", 3))
    if protocol == "shuffle":  # a hypercube does not mix: an example is shown instead, and the page says so
        before = answers(page)
        choose(page, "protocol", "shuffle")
        until(lambda: answers(page) > before)
        assert "bipartite" in find(page, "trouble").text
    else:
        after(page, lambda: choose(page, "protocol", protocol))
    same_as_the_command(page, netdp_json)


def test_keys_are_enough(page):
    """Arrow keys move over the network, Enter makes an observer."""
    from selenium.webdriver.common.keys import Keys

    canvas = find(page, "network")
    canvas.send_keys(Keys.ARROW_UP)
    canvas.send_keys(Keys.ARROW_UP)
    assert "party" in find(page, "told").text
    after(page, lambda: canvas.send_keys(Keys.ENTER))
    assert len(page.find_elements("css selector", "#observers button")) == 2
    find(page, "tab-explore").send_keys(Keys.ARROW_RIGHT)
    assert find(page, "watch").is_displayed()
    assert not find(page, "explore").is_displayed()


def test_the_last_question_wins(page, netdp_json):
    """Many moves of a slider in a moment end with the answer to the last one."""
    for share in (0.2, 0.3, 0.4, 0.5, 0.55):
        slide(page, "sigma", share)
    sigma = float(find(page, "set-sigma").get_attribute("value"))
    until(lambda: f"σ={sigma:g} " in find(page, "claim").text)
    assert same_as_the_command(page, netdp_json)["protocol"]["sigma"] == sigma


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (400, False)])
def test_everybody_can_use_it(address, width, dark):
    """No serious finding of an accessibility check, in light, dark and on a small screen; nothing wider than the screen."""
    with browser(width, 1000, dark=dark) as window:
        window.get(address)
        until(lambda: answers(window) >= 1)
        window.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        assert serious(window) == []
        assert window.execute_script("return document.documentElement.scrollWidth <= innerWidth + 1")


def test_without_the_token_the_page_says_so(address):
    with browser() as window:
        window.get(address.partition("#")[0])
        until(lambda: "token" in window.find_element("id", "trouble").text)


def test_nothing_is_asked_of_other_machines(address):
    with browser() as window:
        window.get(address)
        until(lambda: answers(window) >= 1)
        asked = window.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
        assert asked
        assert all(one.startswith(address.partition("/#")[0]) for one in asked)
