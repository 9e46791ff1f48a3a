"""Attacks on our own guarantees: measured lower bounds on ε beside what is claimed.

A claimed ε is believed when an attack with the observers' full view cannot beat it, and when the same attack catches a planted
bug. `audit` runs the strongest attacks there are on the pairs that matter most; `audit_pair` attacks one.
"""

from netdp.exports import exports

__getattr__, __dir__ = exports(
    __name__,
    {
        "netdp.audit.attack": "SIMULATOR Attack Scores attacks collect",
        "netdp.audit.audits": "Pair audit audit_pair audit_these look",
        "netdp.audit.bounds": "Measured Point clopper_pearson measure one_run",
        "netdp.audit.canaries": "OneRun one_run_audit",
        "netdp.audit.findings": "Audit Check Finding Verdict",
    },
)
