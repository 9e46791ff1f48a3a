"""The command line as a person and as a program would use it."""

import json
import subprocess
import sys

import pytest

import netdp
from netdp.privacy.wording import readable


def test_json_from_flags(run):
    status, out, err = run(
        "account", "hypercube:4", "-T", "8", "--sigma", "2", "--masks", "10", "-o", "0", "-o", "3", "--json"
    )
    assert (status, err) == (0, "")
    data = json.loads(out)
    protocol = netdp.Gossip(netdp.graphs.hypercube(4), rounds=8, sigma=2.0, masks=10.0)
    assert data["observers"] == {"parties": [0, 3], "roles": []}
    assert data["everyone"]["losses"]["loss"]["worst_factor"] == pytest.approx(netdp.account(protocol, [0, 3]).worst)


def test_toml_and_flags(run, tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\nc,a\nc,d\n")
    config = tmp_path / "account.toml"
    config.write_text('graph = "edges.csv"\nrounds = 3\nsigma = 1.5\nmasks = 4.0\nobserver = ["d"]\ndelta = 1e-5\n')
    status, out, _ = run("account", "--config", str(config), "--rounds", "5", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["protocol"]["rounds"] == 5  # a flag wins
    assert data["protocol"]["masks"] == 4.0
    assert data["delta"] == 1e-5
    assert data["observers"] == {"parties": [3], "roles": [], "names": ["d"]}
    assert data["loss"]["names"] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rounds = 3\nspeed = 1", "unknown key 'speed'; gossip takes: rounds, sigma"),
        ("rounds = 3\nobservers = [1]", "unknown key 'observers' (did you mean 'observer'?)"),
        ("rounds = 3\nsteps = 9", "'steps' does not belong to gossip; gossip takes: rounds"),
        ('protocol = "token"\nrounds = 3\nmasks = 9', "'masks' does not belong to a token on ring:5"),
        ('rounds = "three"', "rounds = 'three'"),
        ("rounds = = 3", "is not valid TOML"),
        ("sigma = 1.0", "rounds is missing; give --rounds"),
    ],
)
def test_bad_settings(run, tmp_path, content, message):
    config = tmp_path / "account.toml"
    config.write_text('graph = "ring:5"\n' + content)
    status, out, err = run("account", "-c", str(config))
    assert status == 2
    assert out == ""
    assert message in err
    assert message.startswith("rounds is missing") or str(config) in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ring:9", "-T", "3", "--sigma", "0"], "sigma must be a finite number > 0, got 0.0"),
        (["ring:9", "-T", "3", "--sigma", "nan"], "got nan"),
        (["ring:9", "-T", "0", "--sigma", "1"], "rounds must be a whole number ≥ 1, got 0"),
        (["ring:9", "-T", "3", "--sigma", "1", "-o", "9"], "9"),
        (["ring:9", "-T", "3", "--sigma", "1", "-o", "Ann"], "Ann"),
        (["ring:9", "-T", "3", "--sigma", "1", "--delta", "2"], "delta must lie strictly between 0 and 1, got 2.0"),
        (["ring:9", "-T", "3"], "sigma is missing"),
        (["-T", "3", "--sigma", "1"], "graph is missing; give GRAPH (for example hypercube:8)"),
        (["rign:9", "-T", "3", "--sigma", "1"], "did you mean 'ring:64'"),
        (["ring:9", "-T", "3", "--sigma", "1", "--plot", "out.gif"], "must end in .png, .svg, .pdf or .html"),
        (["ring:9", "-T", "3", "--sigma", "1", "--mixing", "best"], "unknown mixing 'best'"),
        (["erdos_renyi:50,0.01,seed=1", "-T", "3", "--sigma", "1"], "largest_component"),
        (["no/such/file.csv", "-T", "3", "--sigma", "1"], "no/such/file.csv"),
    ],
)
def test_bad_input_is_named(run, words, message):
    status, out, err = run("account", *words)
    assert status == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_bad_files_are_named(run, tmp_path):
    broken, empty = tmp_path / "broken.csv", tmp_path / "empty.csv"
    broken.write_text("from,to\n0,1\n1,two\n")
    empty.write_text("")
    _, _, err = run("account", str(broken), "-T", "3", "--sigma", "1")
    assert f"{broken}:3:" in err
    _, _, err = run("account", str(empty), "-T", "3", "--sigma", "1")
    assert str(empty) in err


def test_plot_is_written_and_named(run, tmp_path):
    target = tmp_path / "out.html"
    status, out, _ = run("account", "karate", "-T", "5", "--sigma", "2", "--refresh", "0.1", "--plot", str(target))
    assert status == 0
    assert "picture:" in out
    assert target.stat().st_size > 10_000


def test_graphs_are_listed(run):
    status, out, _ = run("graphs")
    assert status == 0
    assert "hypercube:8" in out
    assert "karate" in out
    data = json.loads(run("graphs", "--json")[1])
    assert data["families"]["grid"] == "grid:16x16"
    assert "twitch" in data["datasets"]


def test_graphs_say_what_is_installed(run, tmp_path, monkeypatch):
    """By looking whether the file is there, not by reading it."""
    monkeypatch.setenv("NETDP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "deezer").mkdir()
    (tmp_path / "deezer" / "edges.csv").write_text("not an edge list")
    out = run("graphs")[1]
    marks = {line.split()[0]: "not here" not in line for line in out.splitlines() if " here " in line}
    assert marks["deezer"]
    assert marks["karate"]
    assert not marks["twitch"]
    assert len(marks) == len(netdp.graphs.datasets())
    last = f"looked for in {tmp_path} (NETDP_DATA), then in {tmp_path / 'cache' / 'netdp'}."
    assert out.splitlines()[-1].endswith(last)
    data = json.loads(run("graphs", "--json")[1])
    assert data["datasets"]["deezer"]["available"] is True
    assert "users of Deezer" in data["datasets"]["deezer"]["facts"]
    assert data["datasets"]["twitch"]["available"] is False
    assert data["folders"] == [str(tmp_path), str(tmp_path / "cache" / "netdp")]
    monkeypatch.delenv("NETDP_DATA")
    out = run("graphs")[1]
    assert "NETDP_DATA, which is not set" in out.splitlines()[-1]
    assert f"in {tmp_path / 'cache' / 'netdp'}." in out.splitlines()[-1]


def test_version_and_help(run):
    assert run("--version")[1].strip() == netdp.__version__
    assert run() == run("--help")
    for command in ("account", "plan", "simulate", "graphs"):
        assert f"\n  {command} " in run("--help")[1]
        assert "--json" in run(command, "--help")[1]


def test_help_answers_quickly():
    """By what it does not load: numbers and libraries of numbers come with the command that needs them."""
    script = (
        "import sys; from netdp import cli; sys.argv = ['netdp', '--help']\ntry: cli.main()\nexcept SystemExit: pass\n"
    )
    script += (
        "print(*[name for name in ('numpy', 'scipy', 'pydantic', 'networkx') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert "simulate" in done.stdout
    assert [word for word in done.stderr.split() if word != "pydantic"] == []  # typer may load pydantic


def test_progress_bar_appears_only_for_long_work(monkeypatch):
    from netdp.cli import output as progress

    shown = []
    monkeypatch.setattr("rich.progress.Progress.start", lambda self: shown.append("start"))
    monkeypatch.setattr("rich.progress.Progress.stop", lambda self: shown.append("stop"))
    with progress.progress_bar("short") as update:
        update(1, 2)
    assert shown == []
    monkeypatch.setattr(progress, "_SHOW_AFTER", -1.0)
    for watched, what in ((False, []), (True, ["start", "stop"])):  # nobody watches, or somebody does
        monkeypatch.setattr("sys.stderr.isatty", lambda answer=watched: answer, raising=False)
        with progress.progress_bar("long") as update:
            update(1, 2)
            update(2, 2)
        assert shown == what


def test_progress_bar_appears_by_itself_where_somebody_watches(monkeypatch):
    """Work that says nothing for a while is seen to go on, and no bar is left behind by work that is over."""
    import threading

    from netdp.cli import output as progress

    shown, started = [], threading.Event()
    monkeypatch.setattr("rich.progress.Progress.start", lambda self: (shown.append("start"), started.set()))
    monkeypatch.setattr("rich.progress.Progress.stop", lambda self: shown.append("stop"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_SHOW_AFTER", 0.0)
    with progress.progress_bar("silent"):
        assert started.wait(300)
    assert shown == ["start", "stop"]
    shown.clear()
    monkeypatch.setattr(progress, "_SHOW_AFTER", 60.0)
    with progress.progress_bar("short"):
        pass
    assert shown == []
    assert not [one for one in threading.enumerate() if isinstance(one, threading.Timer) and not one.finished.is_set()]


def test_token_plans_are_watched(run, monkeypatch):
    """Both ways to plan a token hand the bar to the search."""
    from contextlib import contextmanager

    from netdp.cli import output as progress

    told = []

    @contextmanager
    def bar(label):
        yield lambda done, total: told.append((label, done, total))

    monkeypatch.setattr(progress, "progress_bar", bar)
    for graph in ("complete:6", "star:4"):
        told.clear()
        run("plan", graph, "-p", "token", "--epsilon", "4", "--visits", "2")
        assert told[-1] == ("planning", 100, 100)


def test_runs_as_a_module():
    words = [sys.executable, "-m", "netdp", "account", "ring:9", "-T", "2", "--sigma", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert "claim: exact" in done.stdout
    assert done.stderr == ""


def test_numbers_in_a_file_are_names(run, tmp_path):
    """A file may number its parties as it likes: 100 is the party that the file calls 100."""
    file = tmp_path / "edges.csv"
    file.write_text("100,200\n200,300\n300,100\n300,400\n")
    data = json.loads(run("account", str(file), "-T", "2", "--sigma", "1", "-o", "400", "--json")[1])
    assert data["observers"]["parties"] == [3]
    status, _, err = run("account", str(file), "-T", "2", "--sigma", "1", "-o", "3")
    assert status == 2
    assert "no node is labelled '3'" in err
    assert "'100', '200', '300', '400'" in err


def test_a_number_typed_on_the_command_line_is_a_name(run, tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("1,2\n2,3\n3,4\n")
    words = ["account", str(file), "-T", "2", "--sigma", "1", "--json"]
    assert json.loads(run(*words, "-o", "1")[1])["observers"]["parties"] == [0]
    assert json.loads(run(*words, "-o", "4", "-o", "2")[1])["observers"]["parties"] == [1, 3]
    config = tmp_path / "account.toml"
    config.write_text("observer = [1]")
    status, _, err = run(*words, "--config", str(config))
    assert status == 2
    assert "1 could mean two nodes" in " ".join(err.split())
    config.write_text('observer = "1"')
    assert json.loads(run(*words, "--config", str(config))[1])["observers"]["parties"] == [0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["account", "complete:100", "-p", "token", "--steps", "500", "--sigma", "1", "--masks", "100"],
         "--masks does not belong to a token on complete:100; it takes: --steps, --sigma, --sender"),
        (["account", "ring:9", "-p", "token", "--rounds", "5", "--sigma", "1", "--sender", "known"],
         "--sender does not belong to a token on ring:9; it takes: --rounds, --sigma, --noise, --closing"),
        (["account", "grid:3x3", "-p", "token", "--rounds", "5", "--sigma", "1"],
         "--rounds does not belong to a token on grid:3x3; it takes: --steps, --sigma, --walk"),
        (["account", "ring:9", "--rounds", "5", "--sigma", "1", "--steps", "3"],
         "--steps does not belong to gossip; it takes: --rounds, --sigma, --refresh, --masks"),
        (["account", "ring:9", "-p", "shuffle", "--rounds", "5", "--epsilon0", "1", "--sigma", "1"],
         "--sigma does not belong to shuffling; it takes: --rounds, --epsilon0, --reporting, --laziness"),
        (["plan", "complete:100", "-p", "token", "--epsilon", "1", "--coalitions", "0.1"],
         "--coalitions does not belong to a plan of a token on complete:100; it takes: --epsilon, --delta, --visits, --colluders"),
        (["plan", "ring:9", "-p", "gossip", "--epsilon", "1", "--visits", "3"],
         "--visits does not belong to a plan of gossip; it takes: --epsilon, --delta, --scope"),
        (["plan", "ring:9", "-p", "gossip", "--epsilon", "1", "--colluders", "3", "--coalitions", "0.1"],
         "--colluders 3 asks for any so many parties; leave --coalitions, --observer and --policy out"),
        (["plan", "ring:9", "-p", "shuffle", "--epsilon", "1", "--max-rounds", "3"],
         "--max-rounds does not belong to a plan of shuffling"),
        (["simulate", "ring:9", "-p", "shuffle", "--uniform", "--rounds", "9", "--epsilon0", "1", "--record", "0"],
         "--record does not belong to shuffling"),
    ],
)  # fmt: skip
def test_flags_of_another_protocol_are_refused_by_name(run, words, message):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_settings_files_take_the_very_names_of_the_flags(run, tmp_path):
    """Every flag of every command, but --config itself, is a key; no other key is."""
    from netdp.cli import account, plan, simulate
    from netdp.settings import loading

    for name, command in {"account": account.account, "plan": plan.plan, "simulate": simulate.simulate}.items():
        flags = {name.replace("_", "-") for name in command.__annotations__} - {"context", "config", "return"}
        assert loading._somewhere(name) == flags
    config = tmp_path / "plan.toml"
    config.write_text(
        'graph = "hypercube:3"\nprotocol = "gossip"\nepsilon = 1\nmax-rounds = 12\nobserver = [0, 3]\njson = true\n'
    )
    data = json.loads(run("plan", "--config", str(config))[1])
    assert max(option["protocol"]["rounds"] for option in data["options"]) <= 12
    assert "these 2 single parties only" in data["holds"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "ring:9", "--epsilon", "banana"], "--epsilon"),
        (["plan", "ring:9", "--epsilon", "nan"], "epsilon must be a finite number ≥ 0, got nan"),
        (["plan", "ring:9", "--epsilon", "1", "--banana"], "No such option: --banana"),
        (["plan", "ring:9", "ring:10", "--epsilon", "1"], "unexpected extra argument"),
        (["banana"], "No such command 'banana'"),
        (["account", "ring:9", "--rounds", "2.5", "--sigma", "1"], "--rounds"),
    ],
)
def test_nonsense_is_refused_in_one_line(run, words, message):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith("netdp: ")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_raw_errors_of_the_library_are_sentences():
    protocol = netdp.Gossip(netdp.graphs.ring(5), rounds=2, sigma=1.0)
    with pytest.raises(netdp.NetdpError, match=r"must be a protocol such as netdp\.Gossip.*got 'x'"):
        netdp.account("x", [0])
    with pytest.raises(netdp.NetdpError, match=r"observers must name who looks.*got None"):
        netdp.account(protocol, None)
    for asks in (netdp.calibrate, lambda p, **target: netdp.plan(p.graph, **target)):
        with pytest.raises(netdp.NetdpError, match="epsilon must be a finite number ≥ 0, got '1'"):
            asks(protocol, epsilon="1", delta=1e-6)


def test_account_shows_the_predicted_error(run):
    words = ["account", "ring:8", "-T", "20", "--sigma", "1", "--masks", "1e6"]
    expected = netdp.expected_error(netdp.Gossip(netdp.graphs.ring(8), rounds=20, sigma=1.0, masks=1e6))
    data = json.loads(run(*words, "--json")[1])
    assert data["error"]["rmse"] == pytest.approx(expected.rmse)
    assert data["error"]["squared"]["masks"] == pytest.approx(expected.masks)
    assert expected.rmse > 4  # what the small ε alone does not say
    assert f"predicted error of the answer: at most {readable(expected.rmse)} (root mean square" in run(*words)[1]
    walk = json.loads(run("account", "complete:50", "-p", "token", "--steps", "500", "--sigma", "9", "--json")[1])
    assert walk["error"]["rmse"] == pytest.approx(((81 + 0.25) / 500) ** 0.5)


def test_account_says_why_an_error_is_not_predicted(run, monkeypatch):
    monkeypatch.setattr("netdp.families.gossip.error.MAX_SHOWN", 5)
    words = ["account", "regular:12,4", "-T", "2", "--sigma", "1"]
    assert "predicted error of the answer: not computed for more than 5 parties" in " ".join(run(*words)[1].split())
    assert "not computed" in json.loads(run(*words, "--json")[1])["error"]["not_available"]
