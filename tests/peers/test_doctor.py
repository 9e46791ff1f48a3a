"""The doctor finds what would go wrong on the day, says so without showing data, and changes nothing."""

import asyncio
import contextlib
import datetime
import json
import shutil
import socket
import types

import pytest

from netdp import __version__
from netdp.errors import InvalidValue, LinkLost, Refused
from netdp.peers import doctor
from netdp.peers import doctor as reach
from netdp.peers.identity import Identity
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.ledger.store import Store
from netdp.peers.messages import NEWEST, OLDEST
from netdp.peers.study import Study, signatures
from netdp.peers.study.task import Task
from netdp.peers.transport import grpc as real
from netdp.peers.transport.grpc import GrpcTransport

NAMES = ("ash", "birch", "cedar")


@pytest.fixture(scope="module")
def made(tmp_path_factory, free_ports):
    """Three homes, and a study that all have signed."""
    folder = tmp_path_factory.mktemp("three")
    people = [Identity.create(folder / name, name) for name in NAMES]
    for one in people:
        (one.home / "policy.toml").write_text(OwnerPolicy.default_text)
    draft = Study.plan("waits", Task(kind="mean", column="minutes", bounds=(0, 120)), NAMES, graph="complete:3",
                       epsilon=0.9, delta=1e-6, colluders=1)  # fmt: skip
    study = draft.complete([one.card for one in people], [f"127.0.0.1:{port}" for port in free_ports(3)])
    sign_all(study, people, folder / "study.toml")
    (folder / "data.csv").write_text("minutes\n31\n")
    return folder


def sign_all(study, people, path):
    study.write(path)
    for one in people:
        signatures.write(path, one.card.name, signatures.sign(study, one))


@pytest.fixture
def place(made, tmp_path):
    """A copy to spoil."""
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def look(place, name="ash", **settings):
    settings.setdefault("data", place / "data.csv")
    data = settings.pop("data")
    return doctor.examine(place / name, place / "study.toml", data, **settings)


def of(checks, what):
    found = [check for check in checks if check.what == what]
    assert len(found) == 1, [check.what for check in checks]
    return found[0]


def failed(checks):
    return [check.what for check in checks if check.status == "fail"]


# ── this machine ──


def test_all_is_well_and_nothing_is_changed(place):
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    told = []
    checks = look(place, tell=told.append)
    assert failed(checks) == []
    assert told == checks
    assert [check.what for check in checks] == [
        "keys", "study", "card", "certificates", "signatures", "promise", "ledger", "policy", "data", "disk", "listening",
        "neighbour birch", "neighbour cedar",
    ]  # fmt: skip
    # alone: the others do not listen now, which is no failure
    assert [check.status for check in checks] == ["ok"] * 11 + ["warn"] * 2
    assert all("--wait" in check.way_out for check in checks[-2:])
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert json.loads(json.dumps([check.to_dict() for check in checks], allow_nan=False))[0]["party"] == "ash"


def spoil_key(place):
    (place / "ash/keys/signing.key").chmod(0o644)


def no_policy(place):
    (place / "ash/policy.toml").unlink()


def tight_policy(place):
    path = place / "ash/policy.toml"
    path.write_text(path.read_text().replace("epsilon = 1.0", "epsilon = 0.5"))


def record_policy_missing(place):
    (place / "ash/policy.toml").write_text("delta = 1e-6\n")


def unsigned(place):
    (place / "study.signatures/cedar.sig").unlink()


def changed(place):
    path = place / "study.toml"
    path.write_text(path.read_text().replace('name = "waits"', 'name = "weights"'))


def less_noise(place):
    study = Study.read(place / "study.toml")
    study.replace(settings={"sigma": study.settings.sigma / 2}).write(place / "study.toml")


def draft(place):
    study = Study.read(place / "study.toml")
    study.replace(nonce="").write(place / "study.toml")


def no_data(place):
    (place / "data.csv").unlink()


def two_rows(place):
    (place / "data.csv").write_text("minutes\n31\n32\n")


def damaged_ledger(place):
    with Store.open(place / "ash/peer.db"):
        pass
    with (place / "ash/peer.db").open("r+b") as file:
        file.seek(0)
        file.write(b"not a database at all")


def other_keys(place):
    shutil.rmtree(place / "ash/keys")
    Identity.create(place / "ash", "ash")


@pytest.mark.parametrize(
    ("spoil", "fails", "words"),
    [
        (spoil_key, ["keys"], "chmod 600"),
        (no_policy, ["policy"], "no policy"),
        (tight_policy, ["policy"], "0.5000 is allowed"),
        (record_policy_missing, ["policy"], "limit"),
        (unsigned, ["signatures"], "cedar: has not signed"),
        (changed, ["signatures"], "another version"),
        (less_noise, ["signatures", "promise", "policy"], "another version"),
        (draft, ["study"], "a nonce"),
        (no_data, ["data"], "cannot be read"),
        (two_rows, ["data"], "does not take this file"),
        (damaged_ledger, ["ledger"], "not a database"),
        (other_keys, ["card"], "another card"),
    ],
)
def test_what_is_wrong_is_found_and_named(place, spoil, fails, words):
    spoil(place)
    checks = look(place)
    assert failed(checks) == fails
    assert words in of(checks, fails[0]).said


def test_a_limit_that_breaks_comes_with_its_numbers(place):
    tight_policy(place)
    check = of(look(place), "policy")
    assert [verdict["holds"] for verdict in check.facts["verdicts"]] == [False, True, True]
    assert "over by" in check.said


def test_without_keys_nothing_hangs_and_the_rest_is_told(place):
    checks = doctor.examine(place / "nobody", place / "study.toml", place / "data.csv")
    assert failed(checks) == ["keys", "disk"]
    assert of(checks, "neighbours").status == of(checks, "policy").status == "warn"
    assert not (place / "nobody").exists()


def test_no_value_of_the_data_is_shown(place):
    for content in ("minutes\n31\n", "4711;secret\n", "minutes\n4711x\n"):
        (place / "data.csv").write_text(content)
        checks = look(place)
        said = " ".join(f"{check.said} {check.way_out}" for check in checks if check.what == "data")
        assert not any(word in said for word in content.replace(";", " ").split() if word != "minutes")
    assert failed(checks) == ["data"]
    assert "data.csv:2: the study does not take" in said


def test_a_home_open_to_others_is_mentioned(place):
    (place / "ash").chmod(0o755)
    check = of(look(place), "keys")
    assert (check.status, check.way_out) == ("warn", f"chmod 700 {place / 'ash'}")


def test_certificates_that_end(place, monkeypatch):
    people = [Identity.load(place / name) for name in NAMES[:2]]
    people.append(Identity.create(place / "short", "cedar", days=20))
    sign_all(Study.read(place / "study.toml").complete([people[2].card]), people, place / "study.toml")
    checks = [check for check in look(place) if check.what == "certificates"]
    assert [(check.status, check.facts.get("party")) for check in checks] == [("warn", "cedar"), ("ok", None)]
    assert 18 <= checks[0].facts["days"] <= 20

    class Later(datetime.datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.datetime.now(zone) + datetime.timedelta(days=25)

    later = types.SimpleNamespace(datetime=Later, UTC=datetime.UTC)
    monkeypatch.setattr(doctor, "datetime", later)
    checks = [check for check in look(place) if check.what == "certificates"]
    assert [(check.status, check.facts.get("party")) for check in checks] == [("fail", "cedar"), ("ok", None)]


def test_little_room_and_slow_disks(place, monkeypatch):
    monkeypatch.setattr(doctor, "LITTLE_SPACE", 1 << 62)
    assert of(look(place), "disk").status == "warn"
    monkeypatch.setattr(doctor, "LITTLE_SPACE", 0)
    monkeypatch.setattr(doctor, "SLOW_DISK", -1.0)
    assert "slow" in of(look(place), "disk").said
    monkeypatch.setattr(doctor.os, "statvfs", lambda path: types.SimpleNamespace(f_bavail=1, f_frsize=4096))
    assert of(look(place), "disk").status == "fail"


@pytest.mark.parametrize("wait", [-1.0, float("inf"), float("nan")])
def test_a_wait_that_is_none(place, wait):
    with pytest.raises(InvalidValue, match="wait"):
        look(place, wait=wait)


# ── the others ──


def where(place, name):
    study = Study.read(place / "study.toml")
    host, port = study.address(study.index(name)).split(":")
    return host, int(port)


def around(place, *names, wait=0.0):
    """Doctors of these parties, at the same time; what each finds about the network."""
    study = Study.read(place / "study.toml")

    async def story():
        found = {name: [] for name in names}
        async with asyncio.timeout(60):
            await asyncio.gather(
                *(reach.look_around(Identity.load(place / name), study, study.index(name), None, wait, found[name].append)
                  for name in names)
            )  # fmt: skip
        return found

    return asyncio.run(story())


class Ear:
    def __init__(self):
        self.events = []

    def linked(self, peer):
        self.events.append(("linked", peer))

    def lost(self, peer, reason):
        self.events.append(("lost", peer))

    async def received(self, peer, frame):
        self.events.append((peer, frame))


@contextlib.asynccontextmanager
async def listening(place, name, *, at=None, study=None, neighbours=()):
    """A transport of this party, at its address or at another's."""
    study = study or Study.read(place / "study.toml")
    me, ear = study.index(name), Ear()
    cards = [study.card(u) for u in range(study.n)]
    transport = GrpcTransport(
        Identity.load(place / name), me, cards, neighbours, [study.address(u) for u in range(study.n)], ear,
        listen=at or study.address(me),
    )  # fmt: skip
    await transport.start()
    try:
        yield transport, ear
    finally:
        await transport.close()


def probed(place, name="ash", of="birch", **settings):
    """What ash's doctor says of birch, while some party listens at birch's address."""
    study = Study.read(place / "study.toml")
    me, u = study.index(name), study.index(of)

    async def story():
        async with listening(place, settings.pop("who", of), at=study.address(u), **settings) as (transport, ear):
            seen = await reach._probe(Identity.load(place / name), study, u)
            return reach._verdict(study, me, u, seen, False, 0.0), transport, ear

    return asyncio.run(story())


def test_doctors_at_the_same_time_see_each_other_and_leave_early(place, monkeypatch):
    monkeypatch.setattr(reach, "LAST_WORD", 0.2)
    found = around(place, *NAMES, wait=50.0)
    for name, checks in found.items():
        assert [check.what for check in checks] == [
            "listening", *(f"neighbour {other}" for other in NAMES if other != name),
        ]  # fmt: skip
        assert [check.status for check in checks] == ["ok"] * 3, checks
        assert all(check.facts["reached"] and check.facts["asked"] for check in checks[1:])
        assert all(abs(check.facts["clock_seconds"]) < 30 for check in checks[1:])


def test_a_neighbour_that_does_not_come_fails_after_the_wait(place):
    found = around(place, "ash", "birch", wait=2.0)
    assert {check.what: check.status for check in found["ash"]} == {
        "listening": "ok", "neighbour birch": "ok", "neighbour cedar": "fail",
    }  # fmt: skip


def test_a_port_that_is_taken(place):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(where(place, "ash"))
        taken.listen()
        checks = around(place, "ash")["ash"]
    assert (checks[0].what, checks[0].status) == ("listening", "fail")
    assert "running already" in checks[0].way_out


def test_the_doctor_makes_no_link_to_a_peer_that_runs(place):
    check, transport, ear = probed(place, neighbours=(0, 2))
    assert check.status == "ok"
    assert ear.events == []
    assert transport.asked == {0}


def test_another_party_at_the_address(place):
    check, _, _ = probed(place, who="cedar")
    assert check.status == "fail"
    assert "does not show the certificate of birch: cedar answers" in check.said


def test_a_stranger_at_the_address(place, tmp_path):
    study = Study.read(place / "study.toml")
    shutil.move(place / "birch", place / "gone")
    stranger = Identity.create(place / "birch", "birch")
    forged = study.complete([stranger.card])
    check, _, _ = probed(place, study=forged)
    assert check.status == "fail"
    assert "no party of this study" in check.said


def test_a_party_that_does_not_take_us_for_who_we_are(place):
    study = Study.read(place / "study.toml")
    other = study.complete([Identity.create(place / "new", "ash").card])  # birch's study lists another ash
    check, transport, _ = probed(place, study=other)
    assert check.status == "fail"
    assert "does not take ours" in check.said
    assert transport.asked == set()


def test_something_else_at_the_address(place):
    study = Study.read(place / "study.toml")

    async def talk(reader, writer):
        writer.write(b"220 welcome\r\n")
        await writer.drain()
        writer.close()

    async def story():
        async with await asyncio.start_server(talk, *where(place, "birch")):
            return await reach._probe(Identity.load(place / "ash"), study, 1)

    seen = asyncio.run(story())
    assert not seen.reached
    assert not seen.closed
    assert "does not speak as a peer does" in seen.problem


@pytest.mark.parametrize(
    ("ahead", "status"), [(10.0, "ok"), (7200.0, "warn"), (-7200.0, "warn"), (2 * 86400.0, "fail")]
)
def test_clocks(place, monkeypatch, ahead, status):
    clock = real.time.time
    monkeypatch.setattr(real, "time", types.SimpleNamespace(time=lambda: clock() + ahead))
    check, _, _ = probed(place)
    assert check.status == status, check
    assert abs(check.facts["clock_seconds"] - ahead) < 5.0


def test_versions_and_formats(place, monkeypatch):
    monkeypatch.setattr(real, "__version__", "99.0")
    check, _, _ = probed(place)
    assert (check.status, check.facts["netdp"]) == ("warn", "99.0")
    monkeypatch.setattr(real, "NEWEST", 99)  # a later version that still speaks ours
    check, _, _ = probed(place)
    assert (check.status, check.facts["format"]) == ("warn", 99)
    monkeypatch.setattr(real, "OLDEST", 98)
    check, _, _ = probed(place)
    assert (check.status, check.way_out) == ("fail", "install a newer netdp here")
    assert "it speaks formats 98 to 99 (netdp 99.0), we speak format" in check.said


@pytest.mark.parametrize(
    ("me", "seen", "asked", "wait", "status"),
    [
        (0, reach._Seen(problem="x", closed=True), False, 0.0, "warn"),  # nobody runs now
        (0, reach._Seen(problem="x", closed=True), False, 9.0, "fail"),
        (0, reach._Seen(problem="x"), False, 0.0, "fail"),  # we must reach it
        (0, reach._Seen(problem="x"), True, 9.0, "fail"),  # it reaches us, but we are the one who dials
        (2, reach._Seen(problem="x"), False, 0.0, "warn"),  # it dials
        (2, reach._Seen(problem="x"), False, 9.0, "fail"),  # and had the time to
        (2, reach._Seen(problem="x"), True, 9.0, "ok"),
    ],
)
def test_only_the_direction_that_is_dialled_is_needed(place, me, seen, asked, wait, status):
    study = Study.read(place / "study.toml")
    assert reach._verdict(study, me, 1, seen, asked, wait).status == status


def test_a_smaller_neighbour_that_never_asked_is_mentioned(place):
    study = Study.read(place / "study.toml")
    told = {"netdp": __version__, "format": NEWEST, "oldest": OLDEST, "time": 0.0}
    assert reach._verdict(study, 2, 1, reach._Seen(hello=told), False, 9.0).status == "warn"
    assert reach._verdict(study, 0, 1, reach._Seen(hello=told), False, 9.0).status == "ok"


# ── hello ──


def test_hello_is_for_listed_parties_whatever_their_number(place):
    study = Study.read(place / "study.toml")

    async def story():
        async with listening(place, "birch") as (transport, _):
            for name in ("ash", "cedar"):
                told = await real.hello(Identity.load(place / name), study.card(1), study.address(1))
                assert set(told) == {"netdp", "format", "oldest", "time"}
            assert transport.asked == {0, 2}
            with pytest.raises(LinkLost):  # not in the list
                await real.hello(Identity.create(place / "stranger", "ash"), study.card(1), study.address(1))
            with pytest.raises(LinkLost):  # not who we want to ask
                await real.hello(Identity.load(place / "ash"), study.card(2), study.address(1))
            assert transport.asked == {0, 2}

    asyncio.run(story())


def test_hello_turns_away_a_certificate_that_is_over(place, monkeypatch):
    study = Study.read(place / "study.toml")
    problem = "the certificate of ash expired"
    ash = study.card(0)
    monkeypatch.setattr(type(ash), "date_problem", lambda card, now=None: problem if card == ash else None)

    async def story():
        async with listening(place, "birch") as (transport, _):
            with pytest.raises(Refused, match="expired"):
                await real.hello(Identity.load(place / "ash"), study.card(1), study.address(1))
            assert transport.asked == set()
            assert list(transport.refusals) == [problem]

    asyncio.run(story())


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", b'{"netdp": "1", "format": 1, "time": NaN}', b'{"netdp": "1", "format": 1e999, "time": 1}'],
)
def test_nonsense_is_no_hello(place, monkeypatch, answer):
    study = Study.read(place / "study.toml")
    monkeypatch.setattr(real.json, "dumps", lambda value: types.SimpleNamespace(encode=lambda: answer))

    async def story():
        async with listening(place, "birch"):
            with pytest.raises(LinkLost, match="no netdp of this version"):
                await real.hello(Identity.load(place / "ash"), study.card(1), study.address(1))

    asyncio.run(story())
