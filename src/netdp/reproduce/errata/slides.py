"""Errata of slides."""
