"""`images` of a prompt: which files they may be, and what a run keeps of them."""

from __future__ import annotations

import hashlib
import os

import pytest

from pytest_openclaw.suites import definition, load_suite
from pytest_openclaw.suites.conversation import MOST_BYTES, MOST_BYTES_TOGETHER, MOST_IMAGES, read_images
from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.replies import Image, media_type_of
from tests.images import GIF, JPEG, WEBP, png

CHART = png(gray=10)


@pytest.fixture
def folder(tmp_path):
    """A suite's folder with a picture, one in a folder of it, and files that are none."""
    (tmp_path / "suite" / "charts").mkdir(parents=True)
    for path, data in {
        "suite/chart.png": CHART,
        "suite/charts/other.dat": JPEG,
        "suite/notes.png": b"Monday: nothing\n",
        "suite/pointer.png": b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n",
        "suite/large.png": CHART + bytes(MOST_BYTES),
        "secret.png": CHART,
    }.items():
        (tmp_path / path).write_bytes(data)
    return tmp_path / "suite"


def load(folder, images, registry):
    """The prompt of a suite in `folder` with these `images`, as TOML writes them."""
    path = folder / "prompts_a.toml"
    path.write_text(f'[[prompts]]\nid = "P1"\nprompt = "How many?"\nimages = {images}\n', encoding="utf-8")
    return load_suite(path, name="benchmarks/prompts_a.toml", registry=registry).prompts[0]


def complaint(folder, images, registry):
    """What is wrong with these `images`, without file and prompt."""
    with pytest.raises(SuiteError) as caught:
        load(folder, images, registry)
    return str(caught.value).removeprefix("benchmarks/prompts_a.toml: prompt P1: images ")


def test_pictures_beside_the_suite(folder, registry):
    """Pictures are read from the suite's folder, in order; their format is that of their first bytes."""
    prompt = load(folder, '["charts/other.dat", "./chart.png"]', registry)

    assert prompt.images == (
        Image(path="charts/other.dat", media_type="image/jpeg", data=JPEG),
        Image(path="./chart.png", media_type="image/png", data=CHART),
    )
    assert "images" not in prompt.extra


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        pytest.param(png(), "image/png", id="png"),
        pytest.param(JPEG, "image/jpeg", id="jpeg"),
        pytest.param(GIF, "image/gif", id="gif"),
        pytest.param(b"GIF87a\x01", "image/gif", id="older-gif"),
        pytest.param(WEBP, "image/webp", id="webp"),
        pytest.param(b"RIFF\x1a\x00\x00\x00WAVEfmt ", None, id="sound"),
        pytest.param(b"BM\x36\x00", None, id="bitmap"),
        pytest.param(b"<svg/>", None, id="vectors"),
        pytest.param(b"", None, id="empty"),
    ],
)
def test_the_first_bytes_say_the_format(data, media_type):
    """Four formats are pictures, whatever a file is called."""
    assert media_type_of(data) == media_type


@pytest.mark.parametrize(
    ("images", "message"),
    [
        pytest.param(
            '"chart.png"',
            'are a string, not a list. Write paths in brackets, such as ["chart.png"].',
            id="no-list",
        ),
        pytest.param(
            "[]",
            'are an empty list. Leave the key out. Write paths in brackets, such as ["chart.png"].',
            id="empty",
        ),
        pytest.param(
            '["chart.png", 3]',
            'no. 2 is a number, not a path. Write paths in brackets, such as ["chart.png"].',
            id="a-number",
        ),
        pytest.param('[" "]', 'no. 1 is blank. Write paths in brackets, such as ["chart.png"].', id="blank"),
        pytest.param(
            '["charts\\\\other.dat"]',
            'no. 1 "charts\\\\other.dat" has a backslash. Write / between folders.',
            id="backslash",
        ),
        pytest.param(
            '["https://example.org/a.png"]',
            'no. 1 "https://example.org/a.png" is an address. Only files beside the suite are sent, so save the '
            "picture there.",
            id="address",
        ),
        pytest.param(
            '["/etc/chart.png"]',
            'no. 1 "/etc/chart.png" is an absolute path. Copy the picture beside the suite, and write its path '
            "from there.",
            id="absolute",
        ),
        pytest.param(
            '["C:/chart.png"]',
            'no. 1 "C:/chart.png" is an absolute path. Copy the picture beside the suite, and write its path '
            "from there.",
            id="drive",
        ),
        pytest.param(
            '["charts/../../secret.png"]',
            'no. 1 "charts/../../secret.png" leads out of the suite\'s folder. Copy the picture beside the '
            "suite, or into a folder there.",
            id="outside",
        ),
        pytest.param(
            '["notes.png"]',
            'no. 1 "notes.png" is no picture by its first bytes. Save it as PNG, JPEG, GIF or WEBP.',
            id="text",
        ),
        pytest.param(
            '["pointer.png"]',
            'no. 1 "pointer.png" is only Git LFS\'s pointer to a picture. Run: git lfs pull',
            id="git-lfs",
        ),
        pytest.param(
            '["chart.png", "large.png"]',
            'no. 2 "large.png" has more than 3,932,160 bytes, which some APIs refuse. Make it smaller.',
            id="large",
        ),
    ],
)
def test_what_is_no_picture_beside_the_suite(images, message, folder, registry):
    """A collection error says which entry is wrong, why, and what to do."""
    assert complaint(folder, images, registry) == message


@pytest.mark.parametrize("path", ["char.png", "charts"])
def test_a_picture_that_is_not_there(path, folder, registry):
    """A missing file, and a folder, are an error that names the folder where it is looked for."""
    assert complaint(folder, f'["{path}"]', registry) == (
        f'no. 1 "{path}" is not there. Put the picture into {folder}, or fix the path.'
    )


def test_a_link_out_of_the_folder(folder, registry):
    """A link to a file elsewhere is refused: a suite of somebody else would send any file of this machine."""
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "within.png").symlink_to(folder / "chart.png")

    assert complaint(folder, '["within.png", "link.png"]', registry) == (
        'no. 2 "link.png" is a link out of the suite\'s folder. Copy the picture there.'
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_picture_that_may_not_be_read(folder, registry):
    """A file without the right to read it is an error with the system's reason."""
    (folder / "chart.png").chmod(0)

    assert complaint(folder, '["chart.png"]', registry) == (
        'no. 1 "chart.png" cannot be read (Permission denied). Allow it to be read.'
    )


def test_limits_of_all_pictures():
    """There are limits on the number of pictures, and on their bytes together."""
    with pytest.raises(ValueError, match=f"are {MOST_IMAGES + 1} pictures. Name at most {MOST_IMAGES}"):
        read_images(["a.png"] * (MOST_IMAGES + 1), lambda _: CHART)
    whole = CHART + bytes(MOST_BYTES - len(CHART))
    assert len(read_images(["a.png"] * 4, lambda _: whole)) == 4
    with pytest.raises(ValueError, match=f"have 19,660,800 bytes together.* {MOST_BYTES_TOGETHER:,}, so"):
        read_images(["a.png"] * 5, lambda _: whole)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param(
            'messages = [{ role = "user", content = "Hi", images = ["chart.png"] }]',
            "messages no. 1 has images. Only the prompt itself has pictures: write images beside its text.",
            id="messages",
        ),
        pytest.param(
            'turns = [{ content = "And this?", images = ["chart.png"] }]',
            'turns no. 1 is an object, not a text. Write texts in brackets, such as ["And now?"].',
            id="turns",
        ),
    ],
)
def test_only_the_prompt_has_pictures(entry, message, registry):
    """In `messages` and `turns` pictures are refused."""
    text = f'[[prompts]]\nid = "P1"\nprompt = "Hi"\n{entry}\n'

    with pytest.raises(SuiteError) as caught:
        parse_suite(text, format="toml", name="s", registry=registry)

    assert str(caught.value) == f"s: prompt P1: {message}"


def test_a_file_is_read_once(folder, registry):
    """Prompts with the same picture share it, so that a long suite has it in memory once."""
    path = folder / "prompts_a.toml"
    prompts = (f'[[prompts]]\nid = "P{n}"\nprompt = "How many?"\nimages = ["chart.png"]\n' for n in (1, 2))
    path.write_text("".join(prompts), encoding="utf-8")

    first, second = load_suite(path, name="a", registry=registry).prompts

    assert first.images[0].data is second.images[0].data


def test_the_definition_has_the_hash_of_each_picture(folder, registry):
    """`config.json` names the pictures and their hashes, and contains none of their bytes."""
    prompt = load(folder, '["chart.png"]', registry)

    kept = definition(prompt)

    assert kept["images"] == ["chart.png"]
    assert kept["images_sha256"] == [hashlib.sha256(CHART).hexdigest()]
    (folder / "chart.png").write_bytes(png(gray=11))
    changed = definition(load(folder, '["chart.png"]', registry))
    assert [key for key in kept if kept[key] != changed[key]] == ["images_sha256"]
