"""Notebooks as pages: text as it is, code with its colours, and the outputs that were saved with it."""

import json
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown page it amounts to."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """As Sphinx calls it."""
        super().parse(as_markdown(json.loads(inputstring)), document)


def as_markdown(notebook: dict[str, Any]) -> str:
    """The cells of a notebook, one after the other.

    >>> cell = {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]}
    >>> print(as_markdown({"cells": [{"cell_type": "markdown", "source": ["# Sums"]}, cell]}))
    # Sums
    <BLANKLINE>
    ```python
    1 + 1
    ```
    <BLANKLINE>
    ```text
    2
    ```
    """
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source:
            parts.append(f"```python\n{source}\n```")
            parts += [shown for output in cell.get("outputs", []) if (shown := _output(output))]
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return _raw("".join(data["image/svg+xml"]))
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        words = "".join(data.get("text/plain", ["a picture"]))
        return _raw(f'<img class="output" alt="{words.strip("<>")}" src="data:image/png;base64,{picture}">')
    if "text/html" in data:
        return _raw("".join(data["text/html"]))
    text = "".join(data.get("text/plain", output.get("text", ""))).rstrip()
    return f"```text\n{text}\n```" if text else ""


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```"
