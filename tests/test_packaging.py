"""What is packed: a wheel that runs outside the checkout with all its files, a source archive, and how to cite it."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import netdp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_PACKED = {".pyc", ".nbc", ".nbi"}  # caches


def run(*command, folder):
    """What a command prints, run outside the checkout by somebody who has set nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The wheel and the source archive, built without a network."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel; pip install 'netdp[dev]' brings it")
    folder = tmp_path_factory.mktemp("packed")
    build = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1])); print(b.build_sdist(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def needed(names):
    """The distributions that are installed with these, without their extras, and with what they need in turn."""
    found = {}
    waiting = list(names)
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            found[wanted.name] = metadata.distribution(wanted.name)
            waiting += found[wanted.name].requires or []
    return found.values()


@pytest.fixture(scope="module")
def installed(packed, tmp_path_factory):
    """A fresh environment with the wheel in it; what netdp depends on is borrowed from this one, extras and netdp are not."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "fresh", with_pip=False)
    python = folder / "fresh" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(packed[0]),
        folder=folder)  # fmt: skip
    borrowed = folder / "borrowed"
    borrowed.mkdir()
    for distribution in needed(PROJECT["dependencies"]):
        for name in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            if not (borrowed / name).exists():
                (borrowed / name).symlink_to(distribution.locate_file(name))
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder))
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    return folder, python


def test_the_wheel_runs_outside_the_checkout(installed):
    folder, python = installed
    place = run(python, "-c", "import netdp; print(netdp.__file__)", folder=folder)
    assert Path(place).is_relative_to(folder)
    assert run(python.with_name("netdp"), "--version", folder=folder) == netdp.__version__


def test_what_needs_an_extra_says_so(installed):
    """Nothing optional is loaded before it is asked for: in an environment like this one, it is not there."""
    folder, python = installed
    there = run(
        python,
        "-c",
        "import importlib.util as u; print(u.find_spec('grpc'), u.find_spec('numpy') is None)",
        folder=folder,
    )
    assert there == "None False"
    for words, extra in ((("up", "study.toml"), "peers"), (("studio",), "peers"), (("account", "ring:6", "--rounds", "2",
                         "--sigma", "4", "--plot", "out.png"), "plot")):  # fmt: skip
        refused = subprocess.run([python.with_name("netdp"), *words], cwd=folder, capture_output=True, text=True)
        assert refused.returncode == 2
        assert f"pip install 'netdp[{extra}]'" in refused.stderr


def test_the_wheel_computes_and_draws(installed):
    folder, python = installed
    run(
        python.with_name("netdp"),
        "account",
        "ring:6",
        "--rounds",
        "2",
        "--sigma",
        "4",
        "--plot",
        "out.html",
        folder=folder,
    )
    assert "<html" in (folder / "out.html").read_text("utf-8")


def test_all_files_of_the_package_are_in_the_wheel(packed):
    """Templates, styles and the studio's page too: what is not packed is missed only by those who install it."""
    source = ROOT / "src"
    here = {
        path.relative_to(source).as_posix()
        for path in (source / "netdp").rglob("*")
        if path.is_file() and path.suffix not in NOT_PACKED
    }
    with zipfile.ZipFile(packed[0]) as wheel:
        names = set(wheel.namelist())
    assert here - names == set()
    assert {"netdp/report/templates/layout.html", "netdp/report/templates/page.css", "netdp/py.typed"} <= names
    strangers = {name for name in names if not name.startswith(("netdp/", f"netdp-{netdp.__version__}.dist-info/"))}
    assert strangers == set()


def test_the_source_archive_has_what_the_two_commands_need(packed):
    with tarfile.open(packed[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "examples/demo.py",
        "docs/conf.py",
    } <= names
    assert "tests/test_packaging.py" in names
    assert not [
        name for name in names if name.endswith((".pyc", ".nbi", ".nbc")) or name.startswith(("build/", ".venv"))
    ]


def test_the_metadata_say_what_it_is(packed):
    with zipfile.ZipFile(packed[0]) as wheel:
        said = wheel.read(f"netdp-{netdp.__version__}.dist-info/METADATA").decode()
        licence = wheel.read(f"netdp-{netdp.__version__}.dist-info/licenses/LICENSE").decode()
    for line in (
        "Name: netdp",
        f"Version: {netdp.__version__}",
        "License-Expression: Apache-2.0",
        "Requires-Python: >=3.11",
    ):
        assert line in said.splitlines()
    assert licence == (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in licence
    assert "npm" not in " ".join(PROJECT["dependencies"])


def test_the_version_is_one():
    assert PROJECT["version"] == netdp.__version__
    assert f"## {netdp.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_it_can_be_cited():
    """CITATION.cff as the Citation File Format 1.2.0 wants it, and about this version."""
    yaml = pytest.importorskip("yaml", reason="PyYAML reads CITATION.cff; pip install 'netdp[docs]' brings it")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert str(cited["version"]) == netdp.__version__
    assert cited["license"] == PROJECT["license"] == "Apache-2.0"
    assert cited["type"] == "software"
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    known = {"abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords",
             "license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact",
             "repository-code", "title", "type", "url", "version"}  # fmt: skip
    assert set(cited) <= known
    for work in (cited, *cited["references"]):
        assert work["title"]
        for author in work["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})
    assert all(re.fullmatch(r"article|conference-paper", work["type"]) for work in cited["references"])


def test_there_are_no_links_to_places_that_do_not_exist():
    """The project has no public home yet; a link to one would be invented."""
    assert {url.split("/")[2] for url in PROJECT["urls"].values()} == {"arxiv.org"}
