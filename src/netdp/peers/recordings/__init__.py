"""Recordings of real peers, and attacks on them: what `netdp audit --peers` does (docs/proofs/audit.md#recordings).

recording     a folder of frames, study, homes and data; what a coalition holds of it
conformance   items, signatures, keys, lengths: what any protocol must look like
kinds         what is asked of each kind of protocol: its rounds, hops and visits, its noise, the attack on it
noise         the noise of every party, opened with all homes
attacks       attacks of a coalition, with what it holds alone
statistics    how unlikely numbers are that should be uniform, or noise of a known size
audit         all of it, as an `Audit`
canaries      a run of test data to be audited

What is particular to a protocol stands in `recordings` of its family.
"""
