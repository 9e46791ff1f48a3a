"""`netdp protocols`: what may stand after -p."""

from __future__ import annotations

import json as json_

import typer

from netdp.settings.catalogue import CATALOGUE


def list_protocols(json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the protocols that commands know: what they do, what is proved of them, their settings, an example."""
    from netdp.settings.models import protocol_fields

    settings = {
        name: sorted({field.replace("_", "-") for way in entry.ways.values() for field in protocol_fields(way)})
        for name, entry in CATALOGUE.items()
    }
    if json:
        listing = {
            name: {
                "does": entry.does, "claims": entry.claims, "example": entry.example, "settings": settings[name],
                "classes": sorted({way.protocol for way in entry.ways.values()}),
            }
            for name, entry in CATALOGUE.items()
        }  # fmt: skip
        print(json_.dumps(listing, indent=2, ensure_ascii=False))
        return
    for name, entry in CATALOGUE.items():
        classes = ", ".join(sorted({way.protocol for way in entry.ways.values()}))
        print(f"{name}  ({classes})\n    {entry.does}\n    claim: {entry.claims}")
        print(f"    takes: {', '.join(f'--{flag}' for flag in settings[name])}\n    {entry.example}")
    print(
        "`netdp plan` takes the same settings but the noise, and --epsilon; `netdp simulate` also --values or --uniform."
    )
