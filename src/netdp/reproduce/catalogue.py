"""All experiments, in the order of the documents: one file each, imported when asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from netdp.errors import InvalidValue

from .experiment import Experiment

# id → module below netdp.reproduce that holds EXPERIMENT. A test checks that the two agree and that none is forgotten.
MODULES: dict[str, str] = {
    "000-theorem1": "amplification.theorem_1",
    "000-theorem2": "amplification.theorem_2",
    "000-theorem3": "amplification.theorem_3",
    "000-fig2a": "amplification.figure_2a",
    "000-fig2b": "amplification.figure_2b",
    "000-fig2c": "amplification.figure_2c",
    "000-fig2d": "amplification.figure_2d",
    "001-fig1": "replication.figure_1",
    "001-fig2": "replication.figure_2",
    "001-fig3": "replication.figure_3",
    "001-fig4": "replication.figure_4",
    "001-fig5": "replication.figure_5",
    "001-fig6": "replication.figure_6",
    "001-fig7": "replication.figure_7",
    "002-topologies": "slides.topologies",
    "002-distance": "slides.distance",
    "002-walks": "slides.walks",
    "003-table1": "network_shuffling.table_1",
    "003-table3": "network_shuffling.table_3",
    "003-table4": "network_shuffling.table_4",
    "003-fig4": "network_shuffling.figure_4",
    "003-fig5": "network_shuffling.figure_5",
    "003-fig6": "network_shuffling.figure_6",
    "003-fig7": "network_shuffling.figure_7",
    "003-fig8": "network_shuffling.figure_8",
    "003-fig9": "network_shuffling.figure_9",
    "004-theorem1": "muffliato.theorem_1",
    "004-table1": "muffliato.table_1",
    "004-table2": "muffliato.table_2",
    "004-fig1a": "muffliato.figure_1a",
    "004-fig1b": "muffliato.figure_1b",
    "004-fig1c": "muffliato.figure_1c",
    "004-fig2": "muffliato.figure_2",
    "004-fig3": "muffliato.figure_3",
    "004-fig4": "muffliato.figure_4",
    "004-fig5": "muffliato.figure_5",
    "ours-refresh": "muffliato.ours_refresh",
    "ours-masks": "muffliato.ours_masks",
    "ours-descent": "muffliato.ours_descent",
    "ours-error-hypercube": "ours.error_hypercube",
    "ours-error-karate": "ours.error_karate",
    "ours-error-geometric": "ours.error_geometric",
    "ours-coalitions": "ours.coalitions",
    "ours-cost": "ours.cost",
    "ours-precision": "ours.precision",
    "ours-learning": "ours.learning",
    "ours-links": "network_shuffling.ours_links",
}


def names() -> list[str]:
    """What may be typed after `netdp reproduce`."""
    return list(MODULES)


def experiment(name: str) -> Experiment:
    """The experiment of that name.

    >>> experiment("000-fig2a").place
    'Figure 2a'
    """
    if name not in MODULES:
        close = get_close_matches(name, MODULES, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see: netdp reproduce --list"
        raise InvalidValue(f"no figure or table is called {name!r}; {hint}")
    found = import_module(f"netdp.reproduce.{MODULES[name]}").EXPERIMENT
    assert isinstance(found, Experiment)
    return found
