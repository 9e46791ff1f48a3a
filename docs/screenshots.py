"""Takes the pictures of pages that the documentation shows: python docs/screenshots.py

Needs Chromium with its driver (Debian: chromium, chromium-driver) and the development dependencies. Every picture is of the real
thing: a studio, a study of sixteen processes, a report about it.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
STUDY = ROOT / "examples" / "clinics" / "study.toml"
sys.path.insert(0, str(ROOT))

from tests.studio.browser import after, answers, browser, studio, until  # noqa: E402

CHOOSE = """
const s = document.getElementById('family'), o = document.createElement('option');
o.value = '=' + arguments[0]; s.append(o); s.value = o.value; s.dispatchEvent(new Event('change'));
"""
SET = "const one = document.getElementById(arguments[0]); one.value = arguments[1]; one.dispatchEvent(new Event('change'))"


def save(window, name: str) -> None:
    """A screenshot, packed well."""
    import io

    from PIL import Image

    picture = Image.open(io.BytesIO(window.get_screenshot_as_png())).convert("RGB")
    picture.save(IMAGES / name, optimize=True)
    print(f"{name}: {(IMAGES / name).stat().st_size // 1024} KB")


def explore() -> None:
    """Refreshed gossip on a geometric graph, seen by a party in its middle."""
    with studio() as address, browser(1320, 1290) as window:
        window.get(address)
        until(lambda: answers(window) >= 1)
        after(window, lambda: window.execute_script(CHOOSE, "geometric:200,0.12,seed=4"))
        after(window, lambda: window.execute_script(SET, "set-refresh", "0.1"))
        after(window, lambda: window.execute_script(SET, "set-rounds", "12"))
        window.find_element("id", "add").send_keys("12")
        after(window, lambda: window.find_element("id", "add-button").click())
        after(window, lambda: window.find_element("css selector", "#observers button").click())  # party 0 looks no more
        until(lambda: "all pairs" in window.find_element("id", "heat-title").text)
        window.execute_script("document.activeElement.blur(); document.getElementById('settings').scrollTop = 0")
        time.sleep(0.5)
        save(window, "studio-explore.png")


def shot(window, slider, share: float) -> bytes:
    """The page at that share of the run; where most is moving the picture has most bytes."""
    move = "arguments[0].value = arguments[0].max * arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    window.execute_script(move, slider, share)
    time.sleep(0.6)
    return window.get_screenshot_as_png()


def watch_and_report() -> None:
    """Sixteen clinics, half-way through their run; and the report about it."""
    with tempfile.TemporaryDirectory() as folder:
        run, page = Path(folder, "run"), Path(folder, "report.html")
        netdp = [sys.executable, "-m", "netdp"]
        subprocess.run([*netdp, "up", str(STUDY), "--folder", str(run)], check=True, stdout=subprocess.DEVNULL)
        with studio("--watch", str(run)) as address, browser(1320, 1080) as window:
            window.get(address)
            until(lambda: "hold the answer" in window.find_element("id", "watch").text)
            slider = until(lambda: window.find_elements("css selector", "#watch input[type=range]"))[0]
            busiest = max((len(shot(window, slider, k / 100)), k / 100) for k in range(50, 95, 3))[1]
            shot(window, slider, busiest)
            save(window, "studio-watch.png")
        subprocess.run([*netdp, "report", str(STUDY), "--run", str(run), "-o", str(page)], check=True)
        with browser(1240, 1000) as window:
            window.get(page.as_uri())
            save(window, "report.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    explore()
    watch_and_report()
