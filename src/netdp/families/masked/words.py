"""What commands and the studio say of masked sums and descents: names, examples, what settings mean. Light: nothing is loaded."""

from __future__ import annotations

from netdp.protocols.family import CatalogueEntry, FamilyWords, Way

WORDS = FamilyWords(
    entries=(
        CatalogueEntry(
            "masked",
            "parties publish under one-time pads that cancel in the sum; what real peers run by default",
            "upper, within a thousandth of a trusted curator; against any coalition, malice included",
            "netdp account hypercube:4 -p masked --sigma 1",
            {"": Way("MaskedSum", study="masked-sum")},
            subject="a masked sum",
            plan="settings:PlanMasked",
            run="settings:RunMasked",
        ),
        CatalogueEntry(
            "masked-descent",
            "every gradient step is one masked sum of all clipped gradients: a curator's noisy descent without a curator",
            "upper, a curator's; against any coalition",
            "netdp account hypercube:4 -p masked-descent --iterations 20 --sigma 4 --step 0.5 --dimension 10",
            {"": Way("MaskedDescent")},
        ),
    ),
    settings={
        "spread": "masked: flood or average.",
        "honest": "masked, laplace: how many honest parties' shares make one noise; all but one by default.",
        "threshold": "masked: so many members together open the sum, in one attempt.",
        "attempts": "masked: how often a party may publish in all; 1 by default.",
        "groups": "masked-descent: sums of so many groups of parties, put together robustly.",
        "aggregate": "masked-descent: mean (the default), median or trimmed, over the groups.",
        "unit": "masked: whose data is protected, party (the default) or record.",
        "sampling": (
            "masked-descent: the secret probability to take part in a step, of each party or record; 1 by default."
        ),
        "max_records": "masked-descent, unit record: how many records a party may have; public.",
        "records": "masked-descent, unit record: about how many there are in all; public.",
        "momentum": "masked-descent: how much of a step goes on in the next; 0 by default.",
        "average": "masked-descent: keep the last model (the default), or the mean of the later half.",
        "reach": "masked, unit record: each coordinate of a party's sum is clipped to this.",
        "centre": "masked: the middle of the values.",
    },
    choices={
        "spread": "protocol:SPREADS",
        "unit": "protocol:UNITS",
        "average": "descent:KEPT",
    },
)
