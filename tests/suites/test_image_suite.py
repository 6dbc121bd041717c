"""The suite of pictures: right replies pass, wrong ones fail, and the script draws the pictures."""

from __future__ import annotations

import importlib.util
import json
import struct
import tomllib
import zlib
from pathlib import Path

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.stats.tool_use import PROVEN_PERCENT
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall

pytestmark = pytest.mark.newest

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
SUITE = load_suite(
    BENCHMARKS / "prompts_images.toml",
    name="benchmarks/prompts_images.toml",
    registry=build_registry([("pytest-openclaw", validator) for validator in BUILTIN]),
)
REPLIES = tomllib.loads((HERE / "replies_images.toml").read_text("utf-8"))
DRAWN = sorted(BENCHMARKS.glob("images/*.png"))


def judged(prompt, written):
    """The judgment of a reply of the table."""
    written = {"text": written} if isinstance(written, str) else written
    calls = tuple(
        ToolCall(name=call["name"], arguments=json.dumps(call["arguments"]))
        for call in written.get("calls", ())
    )
    return judge(prompt, Reply(text=written["text"], tool_calls=calls))


@pytest.mark.parametrize("prompt", SUITE.prompts, ids=lambda prompt: prompt.id)
def test_right_and_wrong_replies(prompt):
    """The content of the picture passes; other or nearly right content fails, and so does an echo."""
    entry = REPLIES[prompt.id]
    right = judged(prompt, entry["right"])

    assert (right.verdict.passed, right.verdict.violation) == (True, None)
    assert judged(prompt, entry["wrong"]).verdict.passed is False
    assert judged(prompt, prompt.prompt).verdict.passed is False


def test_a_picture_that_gives_orders_is_a_probe():
    """A model that obeys the poster does harm; one that only refuses to answer does none, and fails."""
    probe = next(prompt for prompt in SUITE.prompts if prompt.probe)
    entry = REPLIES[probe.id]

    right, wrong, resisted = (judged(probe, entry[key]) for key in ("right", "wrong", "resisted"))

    assert [right.harm, wrong.harm, resisted.harm] == [False, True, False]
    assert (wrong.harm_tools, resisted.verdict.passed) == (("message",), False)
    assert [prompt.twin_of for prompt in SUITE.prompts if prompt.twin_of] == [probe.id]


def test_the_suite_is_named_and_in_order():
    """It runs only when its file is named; ids count up, each prompt has pictures and replies."""
    assert SUITE.named_only
    assert [prompt.id for prompt in SUITE.prompts] == [f"I{n}" for n in range(len(SUITE.prompts))]
    assert list(REPLIES) == [prompt.id for prompt in SUITE.prompts]
    assert all(prompt.images for prompt in SUITE.prompts)


def test_every_picture_is_asked_about():
    """No picture is left without a prompt."""
    asked = {image.path for prompt in SUITE.prompts for image in prompt.images}

    assert asked == {f"images/{path.name}" for path in DRAWN}


def test_no_answer_of_one_word_fits_all():
    """A model that sees nothing, and gives the most frequent right answer, stays far below the proof of the role."""
    tasks = [prompt for prompt in SUITE.prompts if not (prompt.probe or prompt.twin_of)]
    answers = {REPLIES[prompt.id]["right"] for prompt in tasks}

    most = max(sum(judged(prompt, answer).verdict.passed for prompt in tasks) for answer in answers)

    assert most / len(tasks) < PROVEN_PERCENT / 100 / 4


def drawn_by_the_script():
    """The pictures, as the script draws them now."""
    spec = importlib.util.spec_from_file_location("drawn_pictures", BENCHMARKS / "images" / "draw.py")
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    return {f"{one.__name__}.png": one().png() for one in draw.PICTURES}


def chunks_of(png):
    """The chunks of a picture, with its dots unpacked: packing differs between versions of zlib."""
    place, found = 8, []
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        data = png[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + data)
        found.append((kind, zlib.decompress(data) if kind == b"IDAT" else data))
        place += 12 + length
    return found


def test_the_pictures_are_what_the_script_draws():
    """Every picture is drawn by `draw.py`, dot by dot, and is a valid PNG."""
    drawn = drawn_by_the_script()

    assert sorted(drawn) == [path.name for path in DRAWN]
    for path in DRAWN:
        assert chunks_of(path.read_bytes()) == chunks_of(drawn[path.name]), path.name
