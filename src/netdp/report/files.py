"""Writing pictures: the folder is checked before long work, and a file appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from netdp.errors import InvalidValue, MissingDependency, NetdpError


def picture_path(path: str | os.PathLike[str], kinds: tuple[str, ...]) -> Path:
    """The path, if its name ends in one of `kinds` and its folder exists; loads the plotting library for a PNG or SVG."""
    target = Path(path)
    if target.suffix.lower() not in kinds:
        raise InvalidValue(f"cannot draw {str(path)!r}: the name must end in {' or '.join(kinds)}")
    if not target.parent.is_dir():
        raise InvalidValue(f"cannot write {str(path)!r}: the folder {str(target.parent)!r} does not exist")
    if target.suffix.lower() in (".png", ".svg", ".pdf"):
        matplotlib()  # say so before the long work
    return target


def matplotlib() -> Any:
    """Pyplot, drawing to memory."""
    try:
        import matplotlib as library
    except ImportError:
        raise MissingDependency("matplotlib", "drawing a .png or .svg", "plot") from None
    library.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def write_whole(target: Path, content: bytes) -> None:
    """Write beside, then rename."""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise NetdpError(f"cannot write {str(target)!r}: {error.strerror}") from error
