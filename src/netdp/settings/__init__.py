"""What people ask for, as they type or click it: names of protocols, their settings, and the answers; for commands and studio."""
