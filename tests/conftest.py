"""Property tests explore at random on a developer's machine and repeat themselves in continuous integration."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
