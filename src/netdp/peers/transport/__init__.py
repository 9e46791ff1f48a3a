"""How frames of bytes get from a party to its neighbours: an interface, a twin in memory with virtual time, and gRPC.

`base` says what every transport promises, `memory` is for tests and rehearsals, `grpc` is the real one. They are
imported by name: gRPC takes 60 ms to import and is not needed to read a study.
"""
