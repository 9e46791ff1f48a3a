"""How what the parties of one attempt contribute becomes the answer: passed on, averaged, carried by a token, gossiped."""
