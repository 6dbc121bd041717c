"""Long results: files, output of commands, and web pages."""

from pytest_openclaw.values.worlds import ScriptedCommand
from tests.openclaw.agreement.cases import DONE, call, own_case, read

#: as long as an address on loopback, because it is part of a result that is cut
SITE = "http://council.example"
_CHINESE = "".join(chr(0x4E00 + n % 2000) for n in range(20_000))
_FILES = {
    "wide.txt": "".join(f"{n} {'x' * 100}\n" for n in range(1, 1001)),
    "one.txt": f"{'y' * 60_000}\nend\n",
    "report.txt": "".join(f"{n} {'r' * 100}\n" for n in range(1, 501)) + "Total: 500 lines\n",
    "chinese.txt": "".join(f"{n} {_CHINESE[n : n + 60]}\n" for n in range(400)),
}
_PAGES = {
    f"{SITE}/minutes": "".join(f"Item {n}: {'w' * 70}\n" for n in range(800)),
    f"{SITE}/chinese": _CHINESE,
}


def long_results():
    yield own_case(
        "long-read",
        "files over the limits, in lines, in one line and in Chinese, and how each continues",
        *([read(name)] for name in _FILES),
        [read("wide.txt", offset=300), read("wide.txt", limit=900)],
        [read("one.txt", offset=1, cursor=31_000)],
        DONE,
        files=_FILES,
    )
    huge = "".join(f"{n} {'h' * 90}\n" for n in range(2600)) + "All done: 2600\n"
    commands = (*(f"cat {name}" for name in _FILES), "cat one.txt; exit 3", "make")
    yield own_case(
        "long-exec",
        "output over the limits, with and without an outcome, in Chinese, and of more than 200,000 characters",
        *([call("exec", command=command)] for command in commands),
        DONE,
        tools=("exec", "read"),
        files=_FILES,
        commands=(ScriptedCommand(pattern="make", output=huge),),
    )
    minutes = f"{SITE}/minutes"
    yield own_case(
        "long-fetch",
        "pages over the limit, whole and in part",
        [call("web_fetch", url=f"{SITE}/chinese")],
        *([call("web_fetch", url=minutes, maxChars=most)] for most in (100, 900, 5000)),
        [call("web_fetch", url=minutes)],
        [call("web_fetch", url=minutes, maxChars=6000)],
        DONE,
        tools=("web_fetch", "read"),
        files={},
        pages=_PAGES,
    )
