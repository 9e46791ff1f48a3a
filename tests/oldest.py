"""The lowest direct versions that pyproject.toml admits, one `name==version` per line: what `make oldest` installs.

Of what is listed without torch (optional, and installed by nobody at an old version for netdp's sake).
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_WITHOUT = {"torch"}


def lowest(project: dict[str, object]) -> list[str]:
    """Every declared dependency at the first version that its bound admits.

    >>> lowest({"dependencies": ["a>=1.2"], "optional-dependencies": {"x": ["b[c]>=3,<5", "me[x]"]}, "name": "me"})
    ['a==1.2', 'b[c]==3']
    """
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    pins: dict[str, str] = {}
    for declared in [*project["dependencies"], *(one for extra in extras.values() for one in extra)]:  # type: ignore[misc]
        found = re.fullmatch(r"([A-Za-z0-9_.-]+)(\[[^]]*\])?\s*(?:(>=|==)\s*([0-9][0-9A-Za-z.]*)(?:,.*)?)?", declared)
        assert found is not None, declared
        name, options, _, version = found.groups()
        if name in _WITHOUT or name == project["name"]:
            continue
        if version is None:
            raise SystemExit(f"{declared!r} in pyproject.toml has no lower bound; state one, such as {name}>=1.0")
        pin = f"{name}{options or ''}=={version}"
        if pins.setdefault(name, pin) != pin:
            raise SystemExit(f"pyproject.toml has two lower bounds for {name}: {pins[name]} and {pin}; state one")
    return list(pins.values())


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "pyproject.toml"
    print("\n".join(lowest(tomllib.loads(where.read_text(encoding="utf-8"))["project"])))
