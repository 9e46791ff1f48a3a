"""Planning for gossip."""
