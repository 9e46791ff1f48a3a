"""`python -m netdp`."""

from netdp.cli import main

main()
