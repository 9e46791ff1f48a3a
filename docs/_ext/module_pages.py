"""A map of the code: every module of the package with the first sentence it says of itself."""

import ast
from pathlib import Path

import netdp


def modules() -> str:
    """A section for every room, in the order of the package, a line for every module in it."""
    root = Path(netdp.__file__).parent
    rooms = [path for path in sorted(root.iterdir()) if (path / "__init__.py").is_file()]
    order = {room: place for place, room in enumerate((*netdp._ROOMS, "cli"))}
    sections = []
    for room in sorted(rooms, key=lambda path: order.get(path.name, len(order))):
        lines = [f"## {room.name}", "", _says(room / "__init__.py"), ""]
        for path in sorted(room.rglob("*.py")):
            if path.parent != room or path.name != "__init__.py":
                lines += [f"`{path.relative_to(root).as_posix().removesuffix('/__init__.py')}`", f": {_says(path)}", ""]
        sections.append("\n".join(lines))
    return "\n".join(sections)


def _says(path: Path) -> str:
    first = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0]
    text = " ".join(first.split())
    for sign in "\\*_[]<>|{}#":
        text = text.replace(sign, f"\\{sign}") if "`" not in text else text
    return text or "—"
