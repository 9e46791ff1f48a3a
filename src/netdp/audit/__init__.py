"""Attack our own guarantees."""
