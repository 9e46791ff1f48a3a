"""Parties that really talk: keys, the study all sign, the ledger, the wires and the party itself; import its modules."""
