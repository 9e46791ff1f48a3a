"""Every protocol, every ending: files that are what their names say, with marks in them, and the same the next day."""

import json
import re
import shlex
from xml.etree import ElementTree

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, MissingDependency
from netdp.protocols.answers import answer
from netdp.report import style as files
from netdp.report.picture import drawn, page, save_picture, show_of
from netdp.report.style import ENDINGS, Scale
from netdp.settings.catalogue import CATALOGUE

pytest.importorskip("matplotlib")

# The smallest of every protocol; the catalogue's examples are for people, and larger.
SMALLEST = {
    "gossip": "florentine --rounds 3 --sigma 4 --masks 10",
    "randomized": "ring:4 --steps 4 --sigma 4",
    "varying": "ring:8+hypercube:3 --rounds 4 --sigma 4",
    "push-sum": "grid:2x3 --rounds 3 --sigma 4",
    "secret-graph": "complete:30 --edge-probability 0.3 --rounds 2 --varying --sigma 4",
    "secret-ring": "complete:12 --rounds 2 --sigma 40 --colluders 2",
    "masked": "hypercube:3 --sigma 1",
    "token": "complete:12 --steps 60 --sigma 20",
    "histogram": "complete:12 --steps 60 --domain 4 --gamma 0.5 --sender hidden",
    "shuffle": "regular:40,6 --rounds 12 --epsilon0 1",
    "faulty-shuffle": "regular:40,6 --rounds 24 --epsilon0 1 --outages 0.1",
    "relayed-shuffle": "regular:40,6 --rounds 12 --epsilon0 1 --cover 12",
    "descent": "hypercube:3 --iterations 2 --gossip-rounds 2 --sigma 4 --step 0.5",
    "walk-descent": "complete:12 --steps 60 --sigma 4 --step 0.05 --clip 0.5",
    "secret-graph-descent": "complete:40 --edge-probability 0.2 --iterations 2 --sigma 4 --step 0.5",
    "ring-descent": "ring:10 --rounds 2 --sigma 4 --step 0.05",
    "masked-descent": "hypercube:3 --iterations 3 --sigma 4 --step 0.5 --dimension 4",
    "local": "complete:12 --sigma 4",
    "central": "complete:12 --sigma 1",
    "local-descent": "complete:12 --iterations 3 --sigma 4 --step 0.5",
    "central-descent": "complete:12 --iterations 3 --sigma 4 --step 0.5",
}


def subject_of(name):
    """What `netdp account` would draw of the smallest one."""
    from netdp.cli.flags import given
    from netdp.settings.loading import account_settings

    graph, *words = shlex.split(SMALLEST[name])
    typed, place = {"graph": graph, "protocol": name}, 0
    while place < len(words):
        flag = words[place].lstrip("-").replace("-", "_")
        valued = place + 1 < len(words) and not words[place + 1].startswith("--")
        typed[flag] = _number(words[place + 1]) if valued else True
        place += 2 if valued else 1
    settings = account_settings(None, given(typed))
    protocol = settings.made()
    observers = None if settings.colluders else settings.observers(protocol)
    return answer(protocol, observers, settings.delta, colluders=settings.colluders)


def _number(word):
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


def check_png(content):
    from io import BytesIO

    from matplotlib.image import imread

    assert content.startswith(b"\x89PNG\r\n")
    pixels = imread(BytesIO(content))
    assert min(pixels.shape[:2]) > 400
    assert len(np.unique((pixels[::5, ::5, :3] * 15).astype(int).reshape(-1, 3), axis=0)) > 5


def check_svg(content):
    root = ElementTree.fromstring(content)
    assert root.tag.endswith("svg")
    paths = root.findall(".//{http://www.w3.org/2000/svg}path")
    words = "".join(root.itertext())
    assert len(paths) > 15
    assert "ε" in words  # text stays text
    assert b"<dc:date>" not in content


def check_pdf(content):
    assert content.startswith(b"%PDF-")
    assert b"%%EOF" in content[-32:]
    assert b"/FontFile2" in content  # fonts are inside
    assert b"CreationDate" not in content


def check_html(content):
    text = content.decode()
    assert "src=" not in text  # nothing is fetched
    assert "http" not in text
    data = json.loads(re.search(r"const data = (.*);\n", text).group(1))
    shown = [e for e in data["kinds"][0]["epsilon"] if e is not None]
    assert shown
    assert max(shown) > 0
    assert data["curves"]


CHECKS = {".png": check_png, ".svg": check_svg, ".pdf": check_pdf, ".html": check_html}


def test_every_protocol_has_a_smallest_one():
    assert set(SMALLEST) == set(CATALOGUE)
    assert set(CHECKS) == set(ENDINGS)


@pytest.mark.parametrize("name", SMALLEST)
def test_every_protocol_with_every_ending(name, tmp_path):
    shown = show_of(subject_of(name))
    for ending, check in CHECKS.items():
        path = tmp_path / f"out{ending.upper() if name == 'local' else ending}"
        check(files.write_picture(path, lambda: drawn(shown), lambda: page(shown)).read_bytes())


def test_pictures_do_not_depend_on_the_day(tmp_path):
    subject = subject_of("masked")
    for ending in ENDINGS:
        first, second = (save_picture(subject, tmp_path / f"{k}{ending}").read_bytes() for k in "ab")
        assert first == second


def texts(figure):
    """All words of a figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_nothing_and_no_bound_have_a_colour_and_a_word_of_their_own():
    shown = show_of(answer(netdp.Gossip(graphs.ring(12), 3, 4.0), 0))
    assert "nothing learned (ε = 0)" in texts(drawn(shown))
    scale = shown.scale
    small, nothing, unbounded, nobody = scale.painted(np.array([scale.low / 10, 0.0, np.inf, np.nan])).tolist()
    assert len({tuple(colour) for colour in (small, nothing, unbounded, nobody)}) == 4
    assert nothing[:3] == [1, 1, 1]
    assert unbounded[:3] == [0, 0, 0]
    everything = answer(netdp.RingSum(10, rounds=3, sigma=4.0, closing=False), [8], 1e-6)
    assert "no finite ε" in page(show_of(everything))


@pytest.mark.parametrize("losses", [[0.118, 0.124], [1e-9, 2.0], [0.0], [np.inf], [3.0, 900.0], [0.2, 1.1]])
def test_a_scale_has_several_readable_ticks(losses):
    scale = Scale.of([np.array(losses)], {})
    assert 3 <= len(scale.ticks) <= 9
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert all(f"{tick:e}"[0] in "123457" for tick in scale.ticks)


def test_the_bar_says_where_local_dp_and_the_curator_are():
    words = texts(drawn(show_of(subject_of("gossip"))))
    assert any(word.startswith("local DP ") for word in words)
    assert any(word.startswith("trusted curator ") for word in words)


def test_parties_have_their_names_where_they_are_few_and_letters_are_large_enough():
    from matplotlib.text import Text

    figure = drawn(show_of(subject_of("gossip")))
    assert {"Medici", "Strozzi", "Acciaiuoli"} <= set(texts(figure))
    assert all(text.get_fontsize() >= 7 for text in figure.findobj(Text) if text.get_text())
    assert figure.get_figwidth() <= 7.0
    many = drawn(show_of(answer(netdp.Gossip(graphs.dataset("les-miserables"), 2, 4.0), "Valjean")))
    assert "Cosette" not in texts(many)


def test_names_do_not_lie_on_each_other():
    """On paper, as drawn: boxes of the names of the Florentine families overlap by little, if at all."""
    figure = graphs.dataset("florentine").plot()
    figure.canvas.draw()
    labels = set(graphs.dataset("florentine").labels)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text() in labels]
    assert len(boxes) == 15
    shared = sum(
        max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0, min(a.y1, b.y1) - max(a.y0, b.y0))
        for i, a in enumerate(boxes)
        for b in boxes[:i]
    )
    assert shared < 0.05 * sum(box.width * box.height for box in boxes)


def test_hostile_names_are_words_not_formulas_or_tags(tmp_path):
    names = ["$x^{", "</script><b>", "<svg onload=1>"]
    graph = graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=names)
    subject = answer(netdp.Gossip(graph, 2, 1.0), names[0])
    for ending in ENDINGS:
        content = save_picture(subject, tmp_path / f"x{ending}").read_bytes()
        CHECKS[ending](content)
        assert b"<svg onload" not in content or ending == ".html"  # there it is inside of quotes
    assert (tmp_path / "x.html").read_text("utf-8").count("</script>") == 1


@pytest.mark.parametrize("name", ["out.jpg", "out", "out.png.zip"])
def test_other_endings_are_refused_by_name(name, tmp_path):
    with pytest.raises(InvalidValue, match=rf"{re.escape(name)}.*\.png, \.svg, \.pdf or \.html"):
        files.picture_path(tmp_path / name)


def test_without_the_library_pages_are_still_written_and_the_rest_says_the_way_out(tmp_path, monkeypatch):
    import sys

    subject = subject_of("masked")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    check_html(save_picture(subject, tmp_path / "out.html").read_bytes())
    with pytest.raises(MissingDependency, match=r"pip install 'netdp\[plot\]'"):
        save_picture(subject, tmp_path / "out.pdf")
