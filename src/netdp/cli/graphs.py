"""`netdp graphs`: what may stand for GRAPH on the command line."""

from __future__ import annotations

import json as json_

import typer


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
