"""Writing pictures: the ending of a name says the kind of file, and a file appears whole or not at all.

Every picture of netdp is written by `write_picture`: .png for screens, .svg and .pdf as vectors for papers, .html as one page
with nothing from outside. Names and folders are checked before long work (`picture_path`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from netdp.errors import InvalidValue, MissingDependency, NetdpError

if TYPE_CHECKING:
    from .figures import Picture

ENDINGS = (".png", ".svg", ".pdf", ".html")
"""What the name of a picture may end in."""


def picture_path(path: str | os.PathLike[str]) -> Path:
    """The path, if its name ends in one of `ENDINGS`, its folder exists and what draws it is installed.

    >>> picture_path("loss.jpg")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: cannot draw 'loss.jpg': the name must end in .png, .svg, .pdf or .html
    """
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InvalidValue(
            f"cannot draw {str(path)!r}: the name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        )
    if not target.parent.is_dir():
        raise InvalidValue(f"cannot write {str(path)!r}: the folder {str(target.parent)!r} does not exist")
    if target.suffix.lower() != ".html":
        needs_matplotlib()  # say so before the long work
    return target


def write_picture(path: str | os.PathLike[str], draw: Callable[[], Picture], page: Callable[[], str]) -> Path:
    """Write what the ending asks for: the page as .html, or the drawing as .png, .svg or .pdf."""
    target = picture_path(path)
    kind = target.suffix.lower()
    write_whole(target, page().encode() if kind == ".html" else draw().rendered(kind[1:]))
    return target


def needs_matplotlib() -> None:
    """Refuse, with the way out, where the plotting library is missing."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise MissingDependency("matplotlib", "drawing", "plot") from None


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
