"""HTML from the templates beside this module: texts are escaped, and a template that names what it was not given is an error.

What is markup already must say so: `svg` for pictures of our own, `formula` for exponents. Jinja is loaded when something is
rendered.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_EXPONENT = re.compile(r"\^(?:\{([^}]*)\}|\(((?:[^()]|\([^()]*\))*)\)|(−?ε[₀-₉]*))")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("netdp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def rendered(template: str, /, **values: Any) -> str:
    """The template of this name with these values.

    >>> "<strong>&lt;b&gt;</strong>" in rendered("card.html", kind="", title="<b>", parts=[])
    True
    """
    return _environment().get_template(template).render(values)


def whole_page(template: str, sheet: str, /, **values: Any) -> str:
    """A whole page without script, on `layout.html`: of styles it allows this sheet alone, which it names by its hash."""
    style = rendered(sheet, **values)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return rendered(template, style=_markup(style), digest=f"sha256-{digest}", **values)


def svg(picture: str) -> Markup:
    """A picture of our own drawing code, as it stands: names inside it were escaped when it was drawn."""
    return _markup(picture)


def formula(text: str) -> Markup:
    """A text with real exponents, the rest escaped.

    >>> print(formula("(e^ε + δ)/(1 + e^((m−1)ε)) < n^{1/4}"))
    (e<sup>ε</sup> + δ)/(1 + e<sup>(m−1)ε</sup>) &lt; n<sup>1/4</sup>
    """
    from markupsafe import escape

    return _markup(_EXPONENT.sub(lambda found: f"<sup>{found[1] or found[2] or found[3]}</sup>", str(escape(text))))


def _markup(text: str) -> Markup:
    """Nothing else calls a text markup: who reads the callers has seen every way past the escaping."""
    from markupsafe import Markup

    return Markup(text)
