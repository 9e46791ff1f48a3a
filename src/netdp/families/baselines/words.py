"""What commands and the studio say of the baselines: names, examples, and what each setting means. Light: nothing is loaded."""

from __future__ import annotations

from netdp.protocols.family import CatalogueEntry, FamilyWords, Way

WORDS = FamilyWords(
    entries=(
        CatalogueEntry(
            "local",
            "everybody publishes its noisy value: local differential privacy, the baseline without trust",
            "exact",
            "netdp account complete:200 -p local --sigma 4",
            {"": Way("Local", "users")},
        ),
        CatalogueEntry(
            "central",
            "a trusted curator publishes the noisy mean: the baseline with trust",
            "exact",
            "netdp account complete:200 -p central --sigma 0.02",
            {"": Way("Central", "users")},
        ),
        CatalogueEntry(
            "local-descent",
            "everybody publishes its noisy gradient in every step",
            "exact",
            "netdp account complete:200 -p local-descent --iterations 20 --sigma 4 --step 0.5",
            {"": Way("LocalDescent", "users")},
        ),
        CatalogueEntry(
            "central-descent",
            "a trusted curator takes noisy gradient steps",
            "exact",
            "netdp account complete:200 -p central-descent --iterations 20 --sigma 4 --step 0.5",
            {"": Way("CentralDescent", "users")},
        ),
    ),
)
