"""`netdp graphs` and `netdp protocols`: what may stand for GRAPH on the command line, and what after -p."""

from __future__ import annotations

import json as json_

import typer

from netdp.settings.catalogue import CATALOGUE


def list_graphs(json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the graph families and named graphs that commands accept, and which of the latter are on this machine."""
    from netdp import graphs
    from netdp.graphs.named import data_folders
    from netdp.graphs.spec import examples

    folders = [str(folder) for folder in data_folders()]
    if json:
        named = {entry.name: {"facts": entry.facts, "available": entry.available} for entry in graphs.datasets()}
        listing = {"families": examples(), "datasets": named, "folders": folders}
        print(json_.dumps(listing, indent=2, ensure_ascii=False))
        return
    print("Families, by example:")
    for example in examples().values():
        print(f"  {example}")
    print("Named graphs:")
    for entry in graphs.datasets():
        print(f"  {entry.name:18} {'here' if entry.available else 'not here':9} {entry.facts}")
    print("Or the path of an edge list: CSV, TSV or blanks between two columns, '#' comments, may be .gz.")
    print("Behind any of them, +rings:2 or +rings:2,seed=1 lays two random rings over it: karate+rings:2.")
    *given, cache = folders
    first = f"in {given[0]} (NETDP_DATA), then" if given else "in the folder NETDP_DATA, which is not set, then"
    print(f"Files of named graphs are looked for {first} in {cache}.")


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
