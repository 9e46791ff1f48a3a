"""Exactly what computed a report: this program, the libraries that its numbers rest on, Python and the machine's kind."""

from __future__ import annotations

import platform
from importlib import metadata

import netdp

LIBRARIES = (
    "numpy", "scipy", "numba", "networkx", "dp-accounting", "pydantic", "cryptography", "grpcio", "protobuf", "opendp", "torch",
)  # fmt: skip
"""Those whose versions are told; one that is not installed cannot have taken part."""


def versions() -> dict[str, str]:
    """Names and versions; "not installed" for libraries that are not here.

    >>> versions()["netdp"] == netdp.__version__
    True
    """
    found = {"netdp": netdp.__version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found | {"platform": f"{platform.system()} {platform.release()}, {platform.machine()}"}
