"""`--engine`, `--workers` and `--scheduler` on the commands that compute."""

import pytest

from netdp.engines import choice
from netdp.errors import InvalidValue


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:8786"], "a scheduler belongs to the engine dask"),
        (["--engine", "dask"], "the engine dask needs a scheduler; give its address"),
        (["--engine", "cloud"], "unknown engine 'cloud'; choose one of processes, threads, serial, dask"),
        (["--engine", "serial", "--workers", "2"], "the engine serial has one worker, got workers=2"),
        (["--workers", "0"], "workers must be a whole number ≥ 1, got 0"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["account", "ring:5", "-T", "2", "--sigma", "1"],
        ["plan", "ring:5", "--epsilon", "1"],
        ["simulate", "ring:5", "-T", "2", "--sigma", "1", "--uniform"],
        ["reproduce", "--list"],
    ],
)
def test_what_does_not_fit_is_refused(run, command, words, message):
    status, out, err = run(*command, *words)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_the_choice_holds_for_the_command(run, monkeypatch, tmp_path):
    seen = []
    from netdp.protocols import answers

    def told(*_, **__):
        seen.append((choice.current().name, choice.cores()))
        raise InvalidValue("enough")

    monkeypatch.setattr(answers, "account", told, raising=True)
    words = ["account", "ring:5", "-T", "2", "--sigma", "1"]
    run(*words, "--engine", "threads", "--workers", "3")
    config = tmp_path / "settings.toml"
    config.write_text('engine = "serial"\n')
    run(*words, "--config", str(config))
    assert seen == [("threads", 3), ("serial", 1)]
    assert choice.current().name == "processes"


def test_help_says_whom_to_trust(run):
    for command in ("account", "plan", "simulate", "reproduce"):
        text = " ".join(run(command, "--help")[1].split())
        assert "name only a cluster that you control" in text
