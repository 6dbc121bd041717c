"""The images of the suite of images: the script draws them, and a model has to see them."""

import struct
import zlib

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.stats.tool_use import PROVEN_PERCENT
from tests.docs.reference import load_file
from tests.suites.shipped import BENCHMARKS, REPLIES, prompts_of, said

pytestmark = pytest.mark.newest

PROMPTS = prompts_of("images")
DRAWN = sorted(BENCHMARKS.glob("images/*.png"))


def test_every_image_is_asked_about():
    """No image is left without a prompt, and no prompt without an image."""
    assert all(prompt.images for prompt in PROMPTS)
    assert {image.path for prompt in PROMPTS for image in prompt.images} == {
        f"images/{path.name}" for path in DRAWN
    }


def test_no_answer_of_one_word_fits_all():
    """A model that sees nothing, and gives the most frequent right answer, stays far below the proof of the role."""
    tasks = [prompt for prompt in PROMPTS if not (prompt.probe or prompt.twin_of)]
    answers = {REPLIES["images"][prompt.id]["right"] for prompt in tasks}

    most = max(sum(judge(prompt, said(answer)).verdict.passed for prompt in tasks) for answer in answers)

    assert most / len(tasks) < PROVEN_PERCENT / 100 / 4


def chunks_of(png):
    """Return the chunks of an image, with its dots unpacked: packing differs between versions of zlib."""
    place, found = 8, []
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        data = png[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + data)
        found.append((kind, zlib.decompress(data) if kind == b"IDAT" else data))
        place += 12 + length
    return found


def test_the_script_draws_the_images():
    """Every image is drawn by `draw.py`, dot by dot, and is a valid PNG."""
    pictures = load_file(BENCHMARKS / "images" / "draw.py").PICTURES
    drawn = {f"{one.__name__}.png": one().png() for one in pictures}

    assert sorted(drawn) == [path.name for path in DRAWN]
    for path in DRAWN:
        assert chunks_of(path.read_bytes()) == chunks_of(drawn[path.name]), path.name
