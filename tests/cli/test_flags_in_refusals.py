"""No refusal on the command line names an option of Python: it names the flag."""

import re

import pytest

from netdp.cli.flags import as_flags

PYTHON = re.compile(r"(?<![\w.-])(?!n=|m=)[a-z][a-z_0-9]*=(?=\S)")
USUAL = {
    "gossip": "--rounds 5 --sigma 2",
    "masked": "--sigma 2",
    "token": "--steps 6 --sigma 2",
    "shuffle": "--rounds 6 --epsilon0 1",
    "faulty-shuffle": "--rounds 20 --epsilon0 1 --outages .1",
    "histogram": "--steps 6 --domain 3 --gamma .5",
    "masked-descent": "--iterations 3 --sigma 2 --step .1",
}
MORE = [
    "--colluders 2 --rdp 2", "--colluders 2 --observer 3", "--colluders 0", "--colluders 40", "--rdp 2",
    "--rdp nan", "--who-learns-most --rdp 2", "--observer bob", "--observer 1 --observer 1", "--delta 2",
    "--sigma -1", "--absent 7", "--accelerated --grid .5", "--refresh .5 --masks 2 --grid 1", "--sender hidden", "--grid .3",
]  # fmt: skip


@pytest.mark.parametrize("protocol", USUAL)
def test_no_refusal_on_the_command_line_names_a_python_option(run, protocol):
    refused = 0
    for more in MORE:
        status, _, err = run("account", "hypercube:2", "-p", protocol, *USUAL[protocol].split(), *more.split())
        assert status in (0, 2)
        refused += status
        assert not PYTHON.search(err), f"{more}: {err}"
        assert "Observers(" not in err
    assert refused


def test_whoever_looks_at_shuffled_reports_is_named_in_words(run):
    _, _, err = run("account", "ring:5", "-p", "faulty-shuffle", *USUAL["faulty-shuffle"].split(), "--who-learns-most")
    assert "say --observer curator, or --observer curator --observer 3 if user 3 colludes with it" in err
    assert "Observers(" not in err


def test_colluders_and_rdp_are_named_as_flags(run):
    status, _, err = run("account", "ring:6", "-p", "masked", "--sigma", "2", "--colluders", "2", "--rdp", "2")
    assert status == 2
    assert err.startswith("netdp: --rdp 2: what is proved of this MaskedSum against any 2 parties is ε at every δ")
    status, _, err = run("account", "ring:6", "--rounds", "3", "--sigma", "2", "--colluders", "40")
    assert err.startswith("netdp: --colluders 40 leaves nobody of 6 parties")


def test_the_order_of_a_divergence_is_above_one(run):
    for order in ("1", "0.5", "nan", "inf"):
        status, _, err = run("account", "ring:6", "--rounds", "3", "--sigma", "2", "--rdp", order)
        assert (status, f"--rdp {order}: the order of a Rényi divergence is a finite number above 1" in err) == (
            2,
            True,
        ), err


def test_what_is_no_flag_stays_as_it_is():
    sentence = "Graph('ring(5)', n=5, m=5) has k=3; expected_error(protocol, values, transcript=protocol.draw(seed))"
    assert as_flags(sentence) == sentence
    assert as_flags("accelerated=False or accelerated=True") == "--plain or --accelerated"
