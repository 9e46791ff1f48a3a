"""Sums under one-time pads: the least noise for a coalition of any so many parties, or for named ones."""
