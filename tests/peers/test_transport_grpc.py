"""Who may link: exactly the parties of the study's list, by the bytes of their certificates, and nobody reads along."""

import asyncio
import contextlib
import dataclasses
import datetime
import os

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from netdp.errors import InvalidValue, LinkLost, Refused
from netdp.peers.identity import TLS_NAME, Card, Identity, certificate, pem
from netdp.peers.transport.base import Limits
from netdp.peers.transport.grpc import LINK, GrpcTransport, _is_call, grpc, hello

QUICK = Limits(frame=1 << 20, waiting=1 << 19, handshake=5.0, closing=1.0)
DAY = datetime.timedelta(days=1)


class Ear:
    def __init__(self):
        self.events = []

    def linked(self, peer):
        self.events.append(("linked", peer))

    def lost(self, peer, reason):
        self.events.append(("lost", peer, reason))

    async def received(self, peer, frame):
        self.events.append((peer, frame))

    async def until(self, condition, seconds=20):
        async with asyncio.timeout(seconds):
            while not condition(self.events):
                await asyncio.sleep(0.005)

    async def until_linked(self, times=1):
        await self.until(lambda events: sum(event[0] == "linked" for event in events) >= times)


def address(port):
    return f"127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def serving(parties, me=1, *, port, neighbours=None, limits=QUICK, cards=None, others=1, **settings):
    """Party `me` of the list listens; nobody else runs."""
    cards, ear = cards or [party.card for party in parties], Ear()
    neighbours = [u for u in range(len(cards)) if u != me] if neighbours is None else neighbours
    addresses = [address(port if u == me else others) for u in range(len(cards))]
    transport = GrpcTransport(parties[me], me, cards, neighbours, addresses, ear, limits, **settings)
    await transport.start()
    try:
        yield transport, ear
    finally:
        await transport.close()


def key_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


async def knock(port, root, key=None, chain=None, *frames, wait=0.3):
    """Dial as nobody's transport would; the status that comes back, or "linked" if the far end goes along."""
    options = [("grpc.ssl_target_name_override", TLS_NAME), ("grpc.use_local_subchannel_pool", 1)]
    if root is None:
        channel = grpc.aio.insecure_channel(address(port), options=options)
    else:
        channel = grpc.aio.secure_channel(
            address(port), grpc.ssl_channel_credentials(root, key, chain), options=options
        )
    call = channel.stream_stream("/netdp.Peers/Link")()
    try:
        async with asyncio.timeout(10):
            accepted = await call.initial_metadata()
            if "netdp-link" not in (accepted or {}):
                return (await call.code()).name, await call.details()
            for frame in frames:
                with contextlib.suppress(Exception):
                    await call.write(frame)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    code = await call.code()
                    return code.name, await call.details()
            return "linked", ""
    finally:
        call.cancel()
        await channel.close()


def as_party(party):
    return party.tls_key_pem, party.tls_certificate_pem


def test_a_party_of_the_list_is_let_in(parties, free_ports):
    (port,) = free_ports(1)

    async def story():
        async with serving(parties, port=port) as (transport, ear):
            found = await knock(port, parties[1].tls_certificate_pem, *as_party(parties[0]), LINK, b"hello")
            assert found == ("linked", "")
            assert ear.events[:2] == [("linked", 0), (0, b"hello")]
            await ear.until(lambda events: len(events) == 3)
            assert ear.events[2][:2] == ("lost", 0)
            assert not transport.refusals

    asyncio.run(story())


@pytest.mark.parametrize("caller", ["foreign", "nobody", "plaintext", "wrong key", "expired"])
def test_callers_without_a_listed_certificate_do_not_get_through_the_handshake(parties, free_ports, caller, tmp_path):
    (port,) = free_ports(1)
    stranger = ec.generate_private_key(ec.SECP256R1())
    cards = [party.card for party in parties]
    shown = {
        "foreign": (key_pem(stranger), pem(certificate("p0", stranger))),
        "nobody": (None, None),
        "plaintext": (None, None),
        "wrong key": (key_pem(stranger), parties[0].tls_certificate_pem),
    }
    if caller == "expired":
        old = certificate("p0", stranger, days=1, now=datetime.datetime.now(datetime.UTC) - 2 * DAY)
        cards[0] = dataclasses.replace(cards[0], certificate=old)
        shown["expired"] = key_pem(stranger), pem(old)

    async def story():
        async with serving(parties, port=port, cards=cards) as (_, ear):
            root = None if caller == "plaintext" else parties[1].tls_certificate_pem
            code, _ = await knock(port, root, *shown[caller], LINK, b"hello")
            assert code == "UNAVAILABLE"
            assert ear.events == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("caller", "reason"),
    [
        (0, r"party 0 \(p0\) is not a neighbour of party 2 \(p2\)"),
        (3, r"party 3 \(p3\) must be dialled by party 2 \(p2\): the smaller number dials"),
    ],
)
def test_parties_that_should_not_dial_are_turned_away_with_a_reason(parties, free_ports, caller, reason):
    (port,), told = free_ports(1), []

    async def story():
        async with serving(parties, 2, port=port, neighbours=[1, 3], refused=told.append) as (transport, ear):
            code, details = await knock(port, parties[2].tls_certificate_pem, *as_party(parties[caller]), LINK, b"x")
            assert code == "PERMISSION_DENIED"
            assert list(transport.refusals) == told == [details]
            with pytest.raises(Refused, match=reason):
                raise Refused(details)
            assert ear.events == []

    asyncio.run(story())


def minted(issuer, key, subject):
    """A certificate in the name of `subject`, issued by the party `issuer`."""
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (issuer.card.name, subject)]
    made = x509.CertificateBuilder(names[0], names[1], key.public_key(), 99)
    made = made.not_valid_before(now - DAY).not_valid_after(now + DAY)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
    signer = serialization.load_pem_private_key(issuer.tls_key_pem, None)
    return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def loose(party):
    """The party's card with a certificate that does not forbid to issue others."""
    return dataclasses.replace(
        party.card,
        certificate=x509.load_pem_x509_certificate(
            minted(party, serialization.load_pem_private_key(party.tls_key_pem, None), party.card.name)
        ).public_bytes(serialization.Encoding.DER),
    )


def test_a_listed_party_cannot_issue_a_certificate_in_another_name(parties, free_ports, monkeypatch):
    """A bundle of roots accepts p3's forgery of p0; the comparison of bytes does not, nor do the rules for cards."""
    (port,), key = free_ports(1), ec.generate_private_key(ec.SECP256R1())
    forged = key_pem(key), minted(parties[3], key, "p0")
    cards = [party.card for party in parties]
    cards[3] = loose(parties[3])

    async def plain_bundle(cards):
        seen = []

        async def serve(_, call):
            seen.append(call.auth_context()["x509_common_name"])
            await call.send_initial_metadata((("netdp-link", "1"),))

        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(serve)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("netdp.Peers", {"Link": handler}),))
        credentials = grpc.ssl_server_credentials(
            [as_party(parties[1])], b"".join(pem(card.certificate) for card in cards), require_client_auth=True
        )
        server.add_secure_port(address(port), credentials)
        await server.start()
        code, _ = await knock(port, parties[1].tls_certificate_pem, *forged)
        await server.stop(None)
        return code, seen

    # as TLS is mostly used: the forgery passes for p0
    assert asyncio.run(plain_bundle(cards)) == ("OK", [[b"p0"]])
    # certificates that may sign nothing but themselves: refused by TLS already
    assert asyncio.run(plain_bundle([party.card for party in parties])) == ("UNAVAILABLE", [])
    # a list with a loose certificate is not taken at all
    with pytest.raises(InvalidValue, match="certificate of p3 says it may issue others"):
        GrpcTransport(parties[1], 1, cards, [0], [address(port)] * 8, Ear())

    async def by_bytes():
        async with serving(parties, port=port, cards=cards) as (transport, ear):
            code, details = await knock(port, parties[1].tls_certificate_pem, *forged, LINK, b"hello")
            assert (code, details) == ("PERMISSION_DENIED", "a caller whose certificate is not in the study's list")
            assert list(transport.refusals) == [details]
            assert ear.events == []

    monkeypatch.setattr(Card, "check", lambda self: None)  # even if the rules for cards were not there
    asyncio.run(by_bytes())


def test_who_dials_does_not_talk_to_another_party(parties, free_ports):
    """p0 dials p1's address, and p2 is there: listed, but not the one."""
    ports = free_ports(2)

    async def story():
        addresses = [address(port) for port in (ports[0], ports[1], 1)]
        cards, told, ear = [party.card for party in parties[:3]], [], Ear()
        dialler = GrpcTransport(parties[0], 0, cards, [1], addresses, ear, QUICK, refused=told.append)
        async with serving(parties[:3], 2, port=ports[1], neighbours=[0, 1]) as (_, other):
            await dialler.start()
            async with asyncio.timeout(10):
                while not told:
                    await asyncio.sleep(0.01)
            await dialler.close()
            assert "party 1 (p1)" in told[0]
            assert "does not show the certificate of the study's list" in dialler.troubles[1]
            assert ear.events == other.events == []

    asyncio.run(story())


def test_expired_certificates_are_refused_with_their_date(parties, free_ports, monkeypatch):
    (port,) = free_ports(1)
    key, then = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC) - 3 * DAY
    cards = [party.card for party in parties[:2]]
    cards[1] = dataclasses.replace(cards[1], certificate=certificate("p1", key, days=1, now=then))
    date = f"certificate of p1 expired on {then + DAY:%Y-%m-%d}"

    async def story():
        told = []
        transport = GrpcTransport(
            parties[0], 0, cards, [1], [address(port), address(1)], Ear(), QUICK, refused=told.append
        )
        await transport.start()
        await asyncio.sleep(0.4)
        await transport.close()
        assert len(told) == 1  # said once, not at every try
        assert date in told[0]
        assert date in transport.troubles[1]

        monkeypatch.setattr(parties[1], "card", cards[1])
        own = GrpcTransport(parties[1], 1, cards, [0], [address(1), address(port)], Ear(), QUICK)
        with pytest.raises(Refused, match=date):
            await own.start()
        await own.close()

    asyncio.run(story())


def test_two_peers_do_not_share_a_port(parties, free_ports):
    (port,) = free_ports(1)

    async def story():
        async with serving(parties, port=port):
            second = GrpcTransport(parties[2], 2, [p.card for p in parties], [0], [address(port)] * 8, Ear(), QUICK)
            with pytest.raises(Refused, match=f"cannot listen on 127.0.0.1:{port}"):
                await second.start()
            await second.close()
        async with serving(parties, port=port):  # and after closing it is free again
            pass

    asyncio.run(story())


@pytest.mark.parametrize("size", [QUICK.frame + 64, 3 * QUICK.frame])
def test_a_frame_over_the_limit_from_outside_ends_the_link(parties, free_ports, size):
    (port,) = free_ports(1)

    async def story():
        async with serving(parties, port=port) as (_, ear):
            root = parties[1].tls_certificate_pem
            code, _ = await knock(port, root, *as_party(parties[0]), LINK, b"x", bytes(size), b"y", wait=5)
            assert code != "linked"
            await ear.until(lambda events: events and events[-1][0] == "lost")
            assert [event[:2] for event in ear.events] == [("linked", 0), (0, b"x"), ("lost", 0)]

    asyncio.run(story())


def test_a_stream_must_begin_as_a_link(parties, free_ports):
    (port,) = free_ports(1)
    limits = dataclasses.replace(QUICK, handshake=0.5)

    async def story():
        async with serving(parties, port=port, limits=limits) as (transport, ear):
            root = parties[1].tls_certificate_pem
            code, _ = await knock(port, root, *as_party(parties[0]), b"netdp link 2", b"hello", wait=5)
            assert code in {"FAILED_PRECONDITION", "INTERNAL"}  # the latter if the end overtakes what is still written
            code, details = await knock(port, root, *as_party(parties[0]), wait=5)  # silence
            assert code == "FAILED_PRECONDITION"
            assert "netdp link 1" in details
            assert len(transport.refusals) == 1  # silence is no fault: it may have died
            assert ear.events == []

    asyncio.run(story())


def test_close_leaves_no_call_behind(parties, free_ports):
    """Else the end of the event loop cancels it, gRPC prints a traceback, and what it waits for is never freed."""
    (port,) = free_ports(1)
    left = []

    async def story():
        async with serving(parties, port=port):
            silent = asyncio.ensure_future(knock(port, parties[1].tls_certificate_pem, *as_party(parties[0]), wait=20))
            async with asyncio.timeout(20):
                while not {task.get_coro().__name__ for task in asyncio.all_tasks()} & {"_handle_exceptions"}:
                    await asyncio.sleep(0.001)
        left.extend(task.get_name() for task in asyncio.all_tasks() if _is_call(task))
        await silent

    for _ in range(8):
        asyncio.run(story())
    assert left == []


def test_hello_is_answered_to_the_list_only_and_makes_no_link(parties, free_ports, monkeypatch):
    (port,), key = free_ports(1), ec.generate_private_key(ec.SECP256R1())
    cards = [party.card for party in parties]
    cards[3] = loose(parties[3])
    stand_in = type("Forger", (), {"tls_key_pem": key_pem(key), "tls_certificate_pem": minted(parties[3], key, "p0")})

    async def story():
        async with serving(parties, port=port, cards=cards, neighbours=[0]) as (transport, ear):
            told = await hello(parties[2], cards[1], address(port))  # listed, no neighbour
            assert set(told) == {"netdp", "format", "oldest", "time"}
            assert transport.asked == {2}
            with pytest.raises(Refused, match="not in the study's list"):
                await hello(stand_in, cards[1], address(port))
            with pytest.raises(LinkLost):  # another party's certificate is wanted there
                await hello(parties[2], cards[4], address(port))
            assert transport.asked == {2}
            assert ear.events == []

    monkeypatch.setattr(Card, "check", lambda self: None)
    asyncio.run(story())


@contextlib.asynccontextmanager
async def pair(parties, ports, *, through=None, limits=QUICK):
    """p0 and p1, linked; p0 dials the address `through`."""
    ears, cards = [Ear(), Ear()], [party.card for party in parties[:2]]
    addresses = [address(ports[0]), through or address(ports[1])]
    transports = [
        GrpcTransport(parties[u], u, cards, [1 - u], addresses, ears[u], limits, listen=address(ports[u]))
        for u in (0, 1)
    ]
    try:
        for transport in transports:
            await transport.start()
        for ear in ears:
            await ear.until_linked()
        yield transports, ears
    finally:
        for transport in transports:
            await transport.close()


def test_a_newer_stream_replaces_the_older_one(parties, free_ports):
    ports = free_ports(2)

    async def story():
        async with pair(parties, ports) as (transports, ears):
            # p0's transport dials again and replaces this one in turn
            await knock(ports[1], parties[1].tls_certificate_pem, *as_party(parties[0]), LINK, b"again", wait=0.05)
            await ears[1].until_linked(3)
            kinds = [event[0] for event in ears[1].events if event[0] != 0]
            assert kinds == ["linked", "lost", "linked", "lost", "linked"]
            assert ears[1].events[1] == ("lost", 0, "replaced by a newer connection")
            assert "replaced" in ears[0].events[1][2]
            await ears[0].until_linked(2)
            await transports[1].send(0, b"to the newest")
            await ears[0].until(lambda events: events[-1] == (1, b"to the newest"))

    asyncio.run(story())


def test_what_is_on_the_wire_shows_nothing_of_the_frames(parties, free_ports, recording_proxy):
    ports, secret = free_ports(2), os.urandom(2000)

    async def story():
        async with recording_proxy(address(ports[1])) as proxy:
            async with pair(parties, ports, through=proxy.address) as (transports, ears):
                for _ in range(3):
                    await transports[0].send(1, b"there " + secret)
                    await transports[1].send(0, b"back " + secret)
                await ears[0].until(lambda events: len(events) == 4)
                await ears[1].until(lambda events: len(events) == 4)
            assert len(proxy.sent) > 6000
            assert len(proxy.answered) > 6000
            for window in range(0, len(secret) - 8, 8):
                assert secret[window : window + 8] not in proxy.recorded
            for plain in (LINK, b"there ", b"netdp.Peers", parties[0].card.certificate):  # nor who dials
                assert plain not in proxy.recorded

    asyncio.run(story())


def test_a_recording_played_again_gives_no_link(parties, free_ports, recording_proxy):
    ports = free_ports(2)

    async def story():
        async with recording_proxy(address(ports[1])) as proxy:
            async with pair(parties, ports, through=proxy.address) as (transports, ears):
                await transports[0].send(1, b"once")
                await ears[1].until(lambda events: len(events) == 2)
            heard = len(ears[1].events)
            async with serving(parties[:2], port=ports[1]) as (_, ear):
                reader, writer = await asyncio.open_connection("127.0.0.1", ports[1])
                writer.write(bytes(proxy.sent))
                with contextlib.suppress(OSError):
                    async with asyncio.timeout(5):
                        await reader.read()
                writer.transport.abort()
                assert ear.events == []
            assert len(ears[1].events) == heard

    asyncio.run(story())


def test_silence_is_noticed_by_both_ends(parties, free_ports, recording_proxy):
    ports, limits = free_ports(2), dataclasses.replace(QUICK, keepalive=0.5)

    async def story():
        async with (
            recording_proxy(address(ports[1])) as proxy,
            pair(parties, ports, through=proxy.address, limits=limits) as (_, ears),
        ):
            proxy.deaf = True  # no connection is closed; nothing comes through
            for ear in ears:
                await ear.until(lambda events: events[-1][0] == "lost")
            proxy.deaf = False
            for ear in ears:
                await ear.until_linked(2)

    asyncio.run(story())


def test_a_far_end_that_never_answers_is_given_up(parties, free_ports):
    (port,) = free_ports(1)

    async def story():
        silent = await asyncio.start_server(lambda reader, writer: held.append(writer), "127.0.0.1", 0)
        there = address(silent.sockets[0].getsockname()[1])
        cards = [party.card for party in parties[:2]]
        limits = dataclasses.replace(QUICK, handshake=0.4)
        transport = GrpcTransport(parties[0], 0, cards, [1], [address(port), there], Ear(), limits)
        await transport.start()
        async with asyncio.timeout(20):
            while transport.troubles[1] == "not tried yet":
                await asyncio.sleep(0.01)
        assert there in transport.troubles[1]
        await transport.close()
        for writer in held:
            writer.transport.abort()
        silent.close()

    held = []
    asyncio.run(story())


def test_lists_that_do_not_fit_are_refused(parties, tmp_path):
    cards, addresses = [party.card for party in parties[:3]], [address(u + 1) for u in range(3)]
    with pytest.raises(Refused, match="party 1 is not p0"):
        GrpcTransport(parties[0], 1, cards, [0], addresses, Ear())
    with pytest.raises(InvalidValue, match="another party below 3, got 3"):
        GrpcTransport(parties[0], 0, cards, [3], addresses, Ear())
    with pytest.raises(InvalidValue, match="another party below 3, got 0"):
        GrpcTransport(parties[0], 0, cards, [0], addresses, Ear())
    twice = [cards[0], cards[1], dataclasses.replace(cards[2], certificate=cards[1].certificate)]
    with pytest.raises(Refused, match="same certificate"):
        GrpcTransport(parties[0], 0, twice, [1], addresses, Ear())
    for bad in ("nowhere", "host:", ":7", "host:x", "host:70000", 7, "host:²"):
        with pytest.raises(InvalidValue, match='an address is "host:port"'):
            GrpcTransport(parties[0], 0, cards, [1], [addresses[0], bad, addresses[2]], Ear())
    changed = Identity.create(tmp_path, "p0")  # the same name, other keys
    with pytest.raises(Refused, match="party 0 is not p0 with this fingerprint"):
        GrpcTransport(changed, 0, cards, [1], addresses, Ear())

    async def only_neighbours():
        transport = GrpcTransport(parties[0], 0, cards, [1], addresses, Ear())
        with pytest.raises(InvalidValue, match=r"party 2 is not a neighbour of party 0; those are \(1,\)"):
            await transport.send(2, b"x")

    asyncio.run(only_neighbours())
