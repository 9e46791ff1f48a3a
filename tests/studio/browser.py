"""A real browser for the tests of pages: headless Chromium from the system's packages, driven by Selenium."""

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


def reason_why_not():
    """Why there is no browser here, or None."""
    if CHROMIUM is None or DRIVER is None:
        return "no Chromium with its driver on this machine (Debian: apt-get install chromium chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "tests of pages need selenium"
    return None


needs_browser = pytest.mark.skipif(reason_why_not() is not None, reason=reason_why_not() or "")


@contextlib.contextmanager
def browser(width=1400, height=1100, dark=False, profile=None):
    """A browser window; everything it logs can be read at the end."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in (*QUIET, f"--window-size={width},{height}", *([f"--user-data-dir={profile}"] if profile else [])):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        window.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        window.set_script_timeout(60)
        yield window
    finally:
        window.quit()


@contextlib.contextmanager
def studio(*words):
    """`netdp studio` as a process of its own; its address."""
    command = [sys.executable, "-m", "netdp", "studio", "--json", "--no-browser", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "NETDP_WORKERS": "1"})
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.stdout.close()


def until(what, seconds=240.0):
    """Wait until a question has a true answer, and return that."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if answer := what():
            return answer
        time.sleep(0.03)
    raise AssertionError(f"nothing came of it in {seconds} s")


def answers(window):
    """How often the page has shown an answer."""
    return int(window.execute_script("return document.body.dataset.answered || 0"))


def after(window, action, seconds=60.0):
    """Do something and wait for the next answer that it brings; what the page says is wrong is an error."""
    before = answers(window)
    action()

    def answered():
        trouble = window.execute_script(
            "const t = document.getElementById('trouble'); return t.hidden ? '' : t.textContent"
        )
        assert not trouble, trouble
        return answers(window) > before

    until(answered, seconds)


def complaints(window):
    """What the browser's console complained of."""
    return [line["message"] for line in window.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


def serious(window):
    """What an accessibility check (axe-core) calls serious or critical: rule, and where."""
    package = importlib.util.find_spec("axe_playwright_python")  # for the script in it
    if package is None or package.origin is None:
        pytest.skip("no axe-core here: pip install axe-playwright-python")
    (script,) = Path(package.origin).parent.rglob("axe.min.js")
    window.execute_script(script.read_text("utf-8"))
    found = window.execute_async_script("const done = arguments[0]; axe.run(document).then(done, done)")
    return [
        (rule["id"], rule["help"], [node["target"] for node in rule["nodes"]][:4])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
