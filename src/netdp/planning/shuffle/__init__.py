"""Planning for shuffle."""
