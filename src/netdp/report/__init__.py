"""For people: tables, pictures, one-file pages."""

from .picture import save_picture
from .summary import Summary, summarise
from .tables import summary_table

__all__ = ["Summary", "save_picture", "summarise", "summary_table"]
