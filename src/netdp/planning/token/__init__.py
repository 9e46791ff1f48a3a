"""Planning for token."""
