"""Parties that really talk: keys, the study all sign, the ledger, the wires and the party itself; import its modules."""

from __future__ import annotations

from importlib.util import find_spec

from netdp.errors import MissingDependency

for _module, _package in (("cryptography", "cryptography"), ("grpc", "grpcio"), ("google.protobuf", "protobuf")):
    try:
        _found = find_spec(_module) is not None
    except ModuleNotFoundError:  # of its parent
        _found = False
    if not _found:
        raise MissingDependency(_package, "running real peers", "peers")
