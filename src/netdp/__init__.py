"""netdp."""
