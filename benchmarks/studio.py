"""How long people wait for the studio: from choosing a network to its picture with certified colours, and how fluidly it moves.

    python benchmarks/studio.py            needs Chromium and its driver, and NETDP_DATA for the large networks

Every line is one network: seconds until it is drawn and every party has its certified colour, as a share of the two seconds that a
thousand parties may take, and how many pictures a second there are while zooming.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.studio.browser import answers, browser, reason_why_not, studio, until

from measure import few, size
from netdp import graphs

ASKED = 2.0  # seconds, for 1,000 parties
CHOOSE = """
const s = document.getElementById('family'), o = document.createElement('option');
o.value = '=' + arguments[0]; s.append(o); s.value = o.value; s.dispatchEvent(new Event('change'));
"""
ZOOM = """
const done = arguments[0], c = document.getElementById('network'), began = performance.now();
let frames = 0;
function step() {
  const box = c.getBoundingClientRect();
  c.dispatchEvent(new WheelEvent('wheel', {deltaY: frames % 20 < 10 ? -40 : 40, ctrlKey: true, clientX: box.left + 200,
                                           clientY: box.top + 200, bubbles: true, cancelable: true}));
  frames++;
  const spent = performance.now() - began;
  if (spent < 2000) requestAnimationFrame(step); else done(frames / spent * 1000);
}
requestAnimationFrame(step);
"""


def main() -> None:
    """One line per network."""
    if (reason := reason_why_not()) is not None:
        print(f"not measured: {reason}")
        return
    here = {entry.name for entry in graphs.datasets() if entry.available}
    wanted = few(
        [
            "regular:1000,6",
            "grid:100x100",
            *(name for name in ("twitch", "facebook-pages", "deezer") if name in here),
        ]
    )
    with studio() as address, browser() as window:
        began = time.perf_counter()
        window.get(address)
        until(lambda: answers(window) >= 1)
        print(f"{'the page, first answer':24} {time.perf_counter() - began:6.2f} s")
        for name in wanted:
            before = answers(window)
            began = time.perf_counter()
            window.execute_script(CHOOSE, name)
            until(lambda before=before: answers(window) > before, 120)
            seconds = time.perf_counter() - began
            graph = graphs.parse(name)
            time.sleep(size(4, quick=1))  # all pairs come after the picture
            pictures = window.execute_async_script(ZOOM)
            print(
                f"{name:24} {seconds:6.2f} s = {seconds / ASKED:5.2f} of {ASKED:g} s; {graph.n:6,} parties {graph.m:8,} links; "
                f"{pictures:5.1f} pictures a second"
            )


if __name__ == "__main__":
    main()
