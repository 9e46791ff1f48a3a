"""`netdp graphs`: what may stand for GRAPH on the command line."""

from __future__ import annotations

import json as json_

import typer


def list_graphs(json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the graph families and named graphs that commands accept."""
    from netdp import graphs
    from netdp.graphs.spec import examples

    named = {entry.name: entry.facts for entry in graphs.datasets()}
    if json:
        print(json_.dumps({"families": examples(), "datasets": named}, indent=2, ensure_ascii=False))
        return
    print("Families, by example:")
    for example in examples().values():
        print(f"  {example}")
    print("Named graphs:")
    for name, facts in named.items():
        print(f"  {name:18} {facts}")
    print("Or the path of an edge list: CSV, TSV or blanks between two columns, '#' comments, may be .gz.")
