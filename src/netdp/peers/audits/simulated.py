"""An audit of a study in simulation: the protocol that its parties would run, attacked as `netdp.audit` attacks any other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from netdp.audit import Audit, audit

from ..study.same import identity_of

if TYPE_CHECKING:
    from ..study import Study

_USUAL = 3


def audit_in_simulation(
    study: Study, *, delta: float | None = None, colluders: int | None = None, **options: Any
) -> Audit:
    """Attack what a study promises; the audit says whose it is (`facts["study"]`).

    delta      at which ε is stated; by default the study's
    colluders  how many pool what they see in the last row; by default as many as the study plans for, 3 if that is one
    options    as for `netdp.audit.audit`
    """
    planned = study.privacy.colluders
    found = audit(
        study.protocol(), delta=study.privacy.delta if delta is None else delta,
        colluders=(planned if planned > 1 else _USUAL) if colluders is None else colluders,
        title=f"Study “{study.name}”, in simulation", **options,
    )  # fmt: skip
    return replace(found, facts=found.facts | {"study": identity_of(study)})
