"""Sums under one-time pads: the least noise for any so many colluders or for named ones, and how to spread them."""
