"""Repeat, alone, the tests of real processes and browsers that failed beside others: `python tests/repeat.py STATUS`.

On a machine that is busy with other work, a process or a page can be late for reasons that are not the project's. Such a test may
show once more, with nothing beside it, that it passes; if it fails again, the run has failed. Tests that compute, and runs in which
many tests failed or that did not come to their end (STATUS is pytest's, 1 for failed tests), are never repeated.
"""

import json
import subprocess
import sys
from pathlib import Path

REAL = (
    "tests/peers/",
    "tests/studio/",
    "tests/report/",
    "tests/cli/",
    "tests/test_readme.py",
    "tests/test_notebooks.py",
)
MOST = 4


def main(status: str) -> int:
    """Exit status of the repeated run; 1 if nothing may be repeated."""
    noted = Path(".pytest_cache/v/cache/lastfailed")
    failed = sorted(json.loads(noted.read_text())) if noted.exists() else []
    if (
        status != "1"
        or not failed
        or len(failed) > MOST
        or not all(name.startswith(REAL) and "::" in name for name in failed)
    ):
        return 1
    print(f"repeated alone, because they failed beside others: {', '.join(failed)}", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
