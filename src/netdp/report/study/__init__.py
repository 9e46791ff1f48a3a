"""One study for people: a short fragment for notebooks, and a whole report in one HTML file."""

from .summary import summary_html
from .written import write_report

__all__ = ["summary_html", "write_report"]
