"""What taking part has cost a party, written down for good, and what its owner allows."""
