"""Recordings of real peers, and attacks on them: what `netdp audit --peers` does (docs/guarantees.md#recordings).

recorded        a folder of frames, study, homes and data; what a coalition holds of it
conformance     items, signatures, keys, lengths: what any protocol must look like
conversations   rounds, hops and visits, kind by kind
masked_sums     published numbers and their sums; pads_tested: are they uniform, and used once?
noise_opened    the noise of every party, opened with all homes; odds: exact chances for both
attacked        attacks of a coalition, with what it holds alone
audited         all of it, as an `Audit`; canaries: a run of test data to be audited
"""
