"""Mistakes in the documents, each with the smallest computation that shows it; `docs/papers/errata.md` is written from here.

An `Erratum` is a place, what is printed there, what is true, and a function that computes both sides from nothing but the
formula and first principles (exact fractions or brute force where that is possible). `base.markdown()` runs all of them and
writes the page; a test runs them again and compares it with the page in the repository, digit by digit as printed.
"""

from __future__ import annotations
