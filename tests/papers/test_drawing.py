"""Pictures: what can be told apart, what is named, and that a figure fits a page."""

import numpy as np
import pytest

from netdp.papers.drawing import HEIGHT, PAGE, WIDTH, _figure, colours, covered, drawn, shared_legend
from netdp.papers.experiment import FigureKind, Observation, Panel, Result, Series

X = [1, 2, 3, 4, 5]


def panel(*labels, kinds=None, x=X, **more):
    kinds = kinds or [FigureKind.OTHER] * len(labels)
    series = tuple(
        Series(label, x, [10.0 * place + value for value in x], kind)
        for place, (label, kind) in enumerate(zip(labels, kinds, strict=True))
    )
    return Panel("title", "x", "y", series, **more)


def words(axes_or_figure):
    """The names in all legends of a figure."""
    legends = [*axes_or_figure.legends, *(a.get_legend() for a in axes_or_figure.axes if a.get_legend() is not None)]
    return [[text.get_text() for text in legend.get_texts()] for legend in legends]


@pytest.mark.parametrize("wide", [1, 2, 3, 4])
def test_a_figure_is_as_wide_as_a_column_or_a_page(wide):
    figure = _figure([panel("a", "b")] * wide, wide)
    assert figure.get_size_inches()[0] == (WIDTH if wide == 1 else PAGE)
    assert figure.get_size_inches()[1] < 2 * HEIGHT


def test_panels_with_the_same_curves_share_a_legend():
    more, fewer = panel("a", "b", "c"), panel("a", "c")
    assert shared_legend([fewer, more]) is more
    figure = _figure([fewer, more], 2)
    assert words(figure) == [["a", "b", "c"]]
    looks = [{line.get_label(): (line.get_color(), line.get_marker()) for line in a.lines} for a in figure.axes]
    assert looks[0]["c"] == looks[1]["c"]  # what the legend says of a curve holds in every panel
    assert [a.get_ylabel() for a in figure.axes] == ["y", ""]


def test_panels_with_other_curves_have_their_own_legends():
    figure = _figure([panel("a", "b"), panel("a", "d")], 2)
    assert sorted(words(figure)) == [["a", "b"], ["a", "d"]]


def test_what_is_shaded_is_named():
    series = Series("a", X, X, low=[0, 1, 2, 3, 4], high=[2, 3, 4, 5, 6])
    alone = Panel("t", "x", "y", (series,), band="one deviation")
    assert words(_figure([alone], 1)) == [["a", "one deviation"]]
    assert words(_figure([alone, panel("a")], 2)) == [["a", "one deviation"]]


def test_colours_tell_kinds_and_settings_apart():
    kinds = [FigureKind.PUBLISHED, FigureKind.CERTIFIED, FigureKind.PUBLISHED, FigureKind.LOCAL, FigureKind.OTHER]
    assert len(set(colours(panel("a", "b", "c", "d", "e", kinds=kinds)))) == 5
    pairs = panel(
        "k = 4: published", "k = 4: certified", "k = 8: published", "k = 8: certified", kinds=kinds[:2] + kinds[:2]
    )
    one, two, three, four = colours(pairs)
    assert one == two != three == four
    # curves of one colour are drawn with different dashes
    ways = panel("local: published σ", "network: published σ", "central: published σ", kinds=[FigureKind.PUBLISHED] * 3)
    assert len(set(colours(ways))) == 3


def test_a_curve_under_another_is_drawn_as_a_band():
    x = np.linspace(1, 2, 10)
    under, over, apart = Series("under", x, x), Series("over", x, x + 1e-4), Series("apart", x, x + 1)
    both = Panel("t", "x", "y", (under, over, apart))
    assert covered(both) == [1, 0, 0]
    lines = {line.get_label(): line for line in _figure([both], 1).axes[0].lines}
    assert lines["under"].get_linewidth() > 2 * lines["over"].get_linewidth()
    assert covered(Panel("t", "x", "y", (under, Series("half", x, np.where(x < 1.5, x, x + 1))))) == [0, 0]
    # on a logarithmic axis distances are ratios
    small = (Series("a", X, [1e-4] * 5), Series("b", X, [1e-3] * 5), Series("c", X, [1.0] * 5))
    assert covered(Panel("t", "x", "y", small)) == [1, 0, 0]
    assert covered(Panel("t", "x", "y", small, log_y=True)) == [0, 0, 0]


def test_whole_numbers_have_whole_ticks_and_long_ones_are_divided():
    figure = _figure([panel("a", x=[0, 1, 2, 4])], 1)
    figure.canvas.draw()
    shown = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert all("." not in text for text in shown)
    figure = _figure([panel("a", x=[0, 20_000, 100_000])], 1)
    figure.canvas.draw()
    assert "100,000" in [text.get_text() for text in figure.axes[0].get_xticklabels()]


def test_coloured_panels_share_one_bar():
    def dots(_, axes):
        axes.scatter([0, 1], [0, 1])

    one = Panel("t", "", "", (), draw=dots, scale=(1e-4, 1.0, "loss"))
    figure = _figure([one] * 4, 4)
    assert len(figure.axes) == 5
    assert figure.axes[-1].get_ylabel() == "loss"


def test_a_picture_says_what_is_not_in_it():
    one = Observation("x", True, certified=1.0)
    whole = drawn(Result({}, (one,), panels=(panel("a"),)))
    part = drawn(Result({}, (one,), panels=(panel("a"),), missing=("ego graph 686 is not on this machine", "another")))
    words = [text.get_text().replace("\n", " ") for text in part.findobj(lambda thing: hasattr(thing, "get_text"))]
    assert "Not in this picture: ego graph 686 is not on this machine; another." in words
    assert part.get_size_inches()[1] > whole.get_size_inches()[1]
