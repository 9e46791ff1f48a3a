"""Errata of network_shuffling."""
