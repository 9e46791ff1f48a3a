"""The slides of A. Bellet (seed 002): utility by topology, privacy by distance, and the walks."""
