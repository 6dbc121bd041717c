"""Suite files on disk, and `images` of a prompt: the accepted files, and their form in a run."""

import hashlib

import pytest

from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.prompts import KEYS, MOST_IMAGES
from pytest_openclaw.values.replies import Image, media_type_of
from tests.images import GIF, JPEG, WEBP, png

CHART = png(gray=10)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "charts").mkdir()
    (tmp_path / "chart.png").write_bytes(CHART)
    (tmp_path / "charts" / "other.dat").write_bytes(JPEG)
    return tmp_path


def load(folder, images, registry):
    path = folder / "prompts_a.toml"
    path.write_text(f'[[prompts]]\nid = "P1"\nprompt = "How many?"\nimages = {images}\n', encoding="utf-8")
    return load_suite(path, name="benchmarks/prompts_a.toml", registry=registry).prompts[0]


def test_images_of_the_suites_folder(folder, registry):
    """Images are read from the suite's folder, in order; their first bytes have their format."""
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
    """Four formats are images, whatever a file is called."""
    assert media_type_of(data) == media_type


def test_a_prompt_has_a_limited_number_of_images():
    """There is a limit on the number of images."""
    with pytest.raises(ValueError, match=f"not a list of length <= {MOST_IMAGES}"):
        KEYS["images"].read("images", ["a.png"] * (MOST_IMAGES + 1))


def test_a_file_is_read_once(folder, registry):
    """Prompts with the same image share it, so that a long suite has it in memory once."""
    path = folder / "prompts_a.toml"
    prompts = (f'[[prompts]]\nid = "P{n}"\nprompt = "How many?"\nimages = ["chart.png"]\n' for n in (1, 2))
    path.write_text("".join(prompts), encoding="utf-8")

    first, second = load_suite(path, name="a", registry=registry).prompts

    assert first.images[0].data is second.images[0].data


def test_the_definition_has_the_hash_of_each_image(folder, registry):
    """`config.json` names the images and their hashes, and contains none of their bytes."""
    prompt = load(folder, '["chart.png"]', registry)

    kept = definition(prompt)

    assert kept["images"] == ["chart.png"]
    assert kept["images_sha256"] == [hashlib.sha256(CHART).hexdigest()]
    (folder / "chart.png").write_bytes(png(gray=11))
    changed = definition(load(folder, '["chart.png"]', registry))
    assert [key for key in kept if kept[key] != changed[key]] == ["images_sha256"]


def test_a_file_that_is_not_there(tmp_path, registry):
    """A missing file is an error that names it and the system's reason."""
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "prompts_x.toml", name="benchmarks/prompts_x.toml", registry=registry)

    assert str(caught.value) == (
        "benchmarks/prompts_x.toml: cannot be read (No such file or directory). "
        "Check that it is a file you may read."
    )
