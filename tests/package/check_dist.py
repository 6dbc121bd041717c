"""`python tests/package/check_dist.py FOLDER`: check the wheel, the sdist and the component list there."""

import json
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGE = "pytest_openclaw"
# A few by name, so that a missing folder is noticed, too.
IN_WHEEL = (
    "py.typed",
    "cli/starter/prompts_mine.toml",
    "cli/starter/openclaw.yml",
    "cli/starter/requirements.txt",
    "hookspecs.py",
)
IN_SDIST = {"benchmarks", "tests", "docs", PACKAGE, "conftest.py", "tox.ini", "README.md", "CHANGELOG.md", "SECURITY.md", ".github", "LICENSE"}  # fmt: skip


def main(folder):
    wheel, sdist, listed = (_only(folder, pattern) for pattern in ("*.whl", "*.tar.gz", "*.cdx.json"))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], check=True)
    own = {path.relative_to(ROOT).as_posix() for path in _files(ROOT / PACKAGE)}
    suites = {path.relative_to(ROOT).as_posix() for path in _files(ROOT / "benchmarks")}
    _check_components(listed, _check_wheel(wheel, own | {f"{PACKAGE}/{path}" for path in suites}))
    _check_sdist(sdist, own | suites)
    print(f"{wheel.name}, {sdist.name} and {listed.name} hold what they should")


def _check_wheel(wheel, own):
    """Return the wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {PurePosixPath(name).parts[0] for name in names} - {PACKAGE}
        about = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        entries = archive.read(f"{info}/entry_points.txt").decode()
    inside = {name for name in names if name.startswith(f"{PACKAGE}/")}
    _demand(wheel, own | {f"{PACKAGE}/{name}" for name in IN_WHEEL}, inside)
    if strays := inside - own:
        sys.exit(f"{wheel.name} holds what is not in the tree: {', '.join(sorted(strays)[:5])}")
    _demand(wheel, {f"{info}/licenses/LICENSE"}, names)
    classifiers = about.get_all("Classifier", [])
    _demand(wheel, {"Framework :: Pytest", "Typing :: Typed"}, classifiers)
    _demand(wheel, {"[console_scripts]", "[pytest11]"}, entries.splitlines())
    return about


def _check_sdist(sdist, wanted):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    _demand(sdist, wanted, names)
    _demand(sdist, IN_SDIST, {name.partition("/")[0] for name in names})


def _check_components(file, about):
    text = file.read_text("utf-8")
    if "file://" in text:
        sys.exit(f"{file.name} names a path of this machine")
    root = json.loads(text)["metadata"]["component"]
    if (root["name"], root["version"]) != (about["Name"], about["Version"]):
        sys.exit(f"{file.name} is about {root['name']} {root['version']}")


def _demand(archive, wanted, found):
    if missing := set(wanted) - set(found):
        sys.exit(f"{archive.name} lacks {', '.join(sorted(missing)[:5])}")


def _files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def _only(folder, pattern):
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} holds {len(found)} files {pattern}, and one is wanted")
    return found[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
