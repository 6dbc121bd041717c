"""Secrets in texts, values and logs: whole, in five forms; and ordinary texts, which stay unchanged."""

import base64
import json
import logging
import random
import re
import string
import time
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.server_errors import shortened as server_text
from pytest_openclaw.util.redact import HIDDEN, Redactor
from pytest_openclaw.util.text import clip, cut, shortened
from pytest_openclaw.util.typed import shown as shown_value

KEY = "box-0123456789abcdef"
# With characters that every form writes differently.
SECRET = "Zq7W/3Größe 9Rv5'\"\\Tb1+Yn8=a&b<c"
NO_SECRETS = Redactor()


def _encoded(before, *, url_safe=False, after=""):
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return encode(f"{before}{SECRET}{after}".encode()).decode()


FORMS = {
    "plain": SECRET,
    "json": json.dumps(SECRET)[1:-1],
    "json-in-utf-8": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "json-with-slashes": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "repr": repr(SECRET)[1:-1],
    "url": quote(SECRET, safe=""),
    "url-with-slashes": quote(SECRET),
    "url-in-small-letters": re.sub("%..", lambda found: found[0].lower(), quote(SECRET, safe="")),
    "form": quote_plus(SECRET),
    "base64": _encoded(""),
    "base64-after-a-byte": _encoded("a"),
    "base64-after-two-bytes": _encoded("ab"),
    "base64-without-padding": _encoded("a").rstrip("="),
    "base64-url-safe": _encoded("", url_safe=True),
    "hex": SECRET.encode().hex(),
    "hex-in-capitals": SECRET.encode().hex().upper(),
}  # fmt: skip
PLACES = {
    "text": lambda form: f"it is {form}.",
    "value": lambda form: {form: [form, 1, None, (form,)]},
    "nested": lambda form: {"a": [{"b": f'{{"said": "{form}"}}'}]},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms(form, place):
    """A secret is replaced as a whole in each form, in texts and anywhere in JSON values."""
    shown = Redactor.of([SECRET]).value(place(form))

    # At two alignments of base64, the first characters also contain what is before the secret.
    assert shown in [place(f"{form[:n]}{HIDDEN}") for n in range(4)]


@given(
    secret=st.text(st.sampled_from("ab.…'\\/%😀"), min_size=8, max_size=20),
    around=st.text(st.sampled_from("ab.… '\\")),
    spelled=st.sampled_from([str, json.dumps, quote, lambda text: text.encode().hex()]),
)
def test_no_whole_secret_is_left(secret, around, spelled):
    """Whatever surrounds it, the whole secret is gone."""
    assert secret not in Redactor.of([secret]).text(around + spelled(secret) + around)


@pytest.mark.parametrize("escape", ["\\u00%02x", "%%%02X"], ids=["json", "url"])
def test_a_key_of_which_every_character_is_escaped(escape):
    """A page shows the value of an argument, in which it would be the key again."""
    written = "".join(escape % ord(character) for character in KEY)
    ordinary = f'{{"a": "{escape % ord("A")} b"}}'

    assert Redactor.of([KEY]).text(f'{{"a": "{written}"}}') == f'{{"a": "{HIDDEN}"}}'
    assert Redactor.of([KEY]).text(ordinary) == ordinary


def made_up(length, characters=string.ascii_letters + string.digits):
    return "".join(random.Random(length).choices(characters, k=length))


JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","iat":1516239022}', bytes(range(32)))
)
PEM = "-----BEGIN RSA PRIVATE KEY-----\n"
PUBLISHED = {
    "openai": "sk-" + made_up(48),
    "openai-project": "sk-proj-" + made_up(64) + "-_" + made_up(64),
    "anthropic": "sk-ant-api03-" + made_up(93) + "AA",
    "deepseek": "sk-" + made_up(32, string.hexdigits.lower()),
    "stripe": "sk_live_" + made_up(24),
    "groq": "gsk_" + made_up(52),
    "hugging-face": "hf_" + made_up(34, string.ascii_letters),
    "google": "AIza" + made_up(35),
    "github": "ghp_" + made_up(36),
    "github-app": "ghs_" + made_up(36),
    "github-fine-grained": "github_pat_" + made_up(22) + "_" + made_up(59),
    "gitlab": "glpat-" + made_up(20),
    "slack": "xoxb-" + made_up(12, string.digits) + "-" + made_up(24),
    "aws": "AKIA" + made_up(16, string.ascii_uppercase + "234567"),
    "npm": "npm_" + made_up(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + made_up(80),
    "jwt": JWT,
    "private-key": f"{PEM}{made_up(300)}\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("key", PUBLISHED.values(), ids=PUBLISHED)
@pytest.mark.parametrize("around", ["a {} b", "KEY={}", '{{"key": "{}"}}', "line\\n{}\\n", "a%3D{}&b"])
def test_published_formats(key, around):
    """A key of a published format is found though it was not registered."""
    assert NO_SECRETS.text(around.format(key)) == around.format(HIDDEN)


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        pytest.param("WEATHER_API_KEY", "3f9c2a7e5b1d4860", ["3f9c2a7e5b1d4860"], id="key"),
        pytest.param("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI9K7MDENGbPxRfiCY/zxcvb0987", ["/wJalrXUtnFEMI9K7MDENGbPxRfiCY/zxcvb0987"], id="begins-with-a-slash"),
        pytest.param("DB_PASSWORD", "hunter22", ["hunter22"], id="short-password"),
        pytest.param("DB_PASSWORD", "correct horse battery staple", ["correct horse battery staple"], id="passphrase"),
        pytest.param("DATABASE_URL", "postgres://me:p%40ss-w0rd!@db/x", ["p@ss-w0rd!"], id="password-in-an-address"),
        pytest.param("SENTRY_DSN", "https://0a1b2c3d4e5f@sentry.example/1", ["0a1b2c3d4e5f"], id="key-in-an-address"),
        pytest.param("DEPLOY_KEY", "-----BEGIN KEY-----\nAb3dEf6hIj\nkL9mN0pQ==\n-----END KEY-----\n", ["Ab3dEf6hIj", "kL9mN0pQ=="], id="pem"),
        pytest.param("CLOUD_CREDENTIALS", '{"type": "service_account", "private_key": "k9J8h7G6f5", "auth_uri": "https://a.example/auth"}', ["k9J8h7G6f5"], id="json"),
        pytest.param("TOKEN_LIMIT", "4096", [], id="limit"),
        pytest.param("SSH_KEY", "/home/ann/.ssh/id_ed25519", [], id="path"),
        pytest.param("API_KEY_FILE", "k9J8h7G6f5", [], id="file"),
        pytest.param("CACHE_KEY", "node-modules-v3", [], id="name"),
        pytest.param("PWD", "/home/ann2/work", [], id="current-folder"),
        pytest.param("API_KEY", "xxxxxxxxxxxxxxxx", [], id="placeholder"),
        pytest.param("STRIPE_PUBLISHABLE_KEY", "k9J8h7G6f5k9J8h7G6f5", [], id="public"),
        pytest.param("TOKEN_URL", "https://a.example/oauth/9x8y7z", [], id="address"),
    ],
)  # fmt: skip
def test_the_environment(name, value, secrets):
    """The values of variables whose names say so are secret, unless they are ordinary texts."""
    shown = Redactor.of_run([], {name: value}).text("\n".join(secrets or [value]))

    assert shown == ("\n".join(HIDDEN for _ in secrets) or value)


# Values that may be in an environment next to real keys, and must not be masked.
ENVIRONMENT = {
    **{f"SERVICE_{number}_API_KEY": made_up(40 + number) for number in range(12)},
    "ANTHROPIC_API_KEY": PUBLISHED["anthropic"],
    "OPENAI_API_KEY": PUBLISHED["openai-project"],
    "GITHUB_TOKEN": PUBLISHED["github"],
    "ID_TOKEN": JWT,
    "SIGNING_KEY": PUBLISHED["private-key"],
    "DB_PASSWORD": "correct horse battery staple",
    "SHORT_PASSWORD": "tr0ub4dor&",
    "HEX_SECRET": made_up(32, string.hexdigits.lower()),
    "KEY": "true",
    "TOKEN_LIMIT": "4096",
    "SSH_KEY": "/home/ann/.ssh/id_ed25519",
    "CACHE_KEY": "node-modules-v3",
    "AUTH": "ann.smith",
    "POSTGRES_PASSWORD": "postgres",
    "PASSWORD": "password",
}
FIXED = [
    "Set OPENAI_API_KEY=sk-... or export ANTHROPIC_API_KEY=sk-ant-api03-... first.",
    "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "AWS's manual has AKIAIOSFODNN7EXAMPLE as an example.",
    "curl -H 'Authorization: Bearer $OPENAI_API_KEY' https://api.example/v1/models",
    "Bearer YOUR_API_KEY_HERE_PLEASE, a bearer of bad news: bearer-authentication-is-described-below",
    "class sk-fading-circle sk-circle12, task-0123456789abcdefghij, disk-aaaaaaaaaaaaaaaaaaaa1",
    "A JWT begins with eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 and two dots.",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "| ------------ | -------------------- |",
    "the password is correct: a horse, a battery, and a staple; node-modules-v3 in /home/ann/.ssh/id_ed25519",
    "integrity sha512-" + base64.b64encode(random.Random(5).randbytes(64)).decode(),
    "xoxo-kisses, npm_config_registry, hf_hub_download, gh_pages, AIza is a prefix",
]


def test_ordinary_texts_stay():
    """With some twenty secrets in the environment, no ordinary text, prompt, fixture or reply has a mask."""
    root = Path(__file__).parents[3]
    files = [*(root / "benchmarks").glob("prompts_*.toml"), *(root / "tests/corpus").glob("replies_*.jsonl")]
    shipped = [line for path in files for line in path.read_text("utf-8").splitlines()]
    redactor = Redactor.of_run([], ENVIRONMENT)

    assert len(files) > 5
    assert [text for text in (*FIXED, *shipped) if redactor.text(text) != text] == []


UNITS = ["\\", "%41", "&amp;", "sk-", "_sk-a", "eyJaaaaaaaaaab.", "Bearer ", PEM, KEY]


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_takes_long(unit):
    """The time grows only with the length of the text; its square would take minutes here."""
    began = time.process_time()

    Redactor.of([KEY, SECRET]).text(unit * (2**17 // len(unit)))

    assert time.process_time() - began < 20


def test_logs(caplog):
    """Messages, arguments and tracebacks of log records are searched while the redactor is over them."""
    log = logging.getLogger("plugin.http")
    header = base64.b64encode(f"me:{KEY}".encode()).decode()
    before = logging.getLogRecordFactory()

    with caplog.at_level(logging.DEBUG), Redactor.of([KEY, header]).applied():
        log.debug("sent %r", {"authorization": f"Basic {header}"})
        log.info("count %d", 5)
        try:
            raise ValueError(KEY)
        except ValueError:
            log.exception("broken")

    assert logging.getLogRecordFactory() is before
    assert [record.getMessage() for record in caplog.records] == [
        "sent {'authorization': 'Basic [secret]'}",
        "count 5",
        "broken",
    ]
    assert caplog.records[1].args == (5,)
    assert "ValueError: [secret]" in caplog.text
    assert KEY not in caplog.text


LONG = "Ue4Kd9Rw2Xh7Bn5Tq8Jm3Zc6Vp1Ls0Gy4Fa8Wo"


def parts_of(text):
    return {part for n in range(len(LONG) - 7) if (part := LONG[n : n + 8]) in text}


@pytest.mark.parametrize("first", [0, 1, 7, 15])
@pytest.mark.parametrize("n", [8, 9, 20])
def test_a_part_of_a_key_is_masked(first, n):
    """It may come from a server, a library or a plugin that has cut a text."""
    part = LONG[first : first + n]

    assert Redactor.of([LONG]).text(f"key: {part}, key: {part}") == "key: [secret], key: [secret]"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        pytest.param("sk-no-key-required", "this key is required here", id="word"),
        pytest.param("lm-studio-community", "lm-studio", id="words"),
        pytest.param("Password-of-mine-1", "the Password is", id="capital"),
        pytest.param(LONG, LONG[:7], id="seven-characters"),
    ],
)
def test_words_are_not_parts_of_a_key(secret, text):
    """Servers on this machine take any text as a key."""
    assert Redactor.of([secret]).text(text) == text
    assert not Redactor.of([secret]).shows_key(text)


CUTS = {
    "clip": (200, clip),
    "cut": (200, cut),
    "violation": (80, lambda text, most: shortened(text)),
    "server": (300, lambda text, most: server_text(text)),
    "value": (60, lambda text, most: shown_value(text)),
}


@pytest.mark.parametrize(
    "secret",
    [LONG, base64.b64encode(LONG.encode()).decode(), LONG.encode().hex()],
    ids=["plain", "base64", "hex"],
)
@pytest.mark.parametrize("name", CUTS)
def test_no_cut_leaves_a_part_of_a_secret(name, secret):
    """At every offset from the limit: a text is masked first."""
    most, shorten = CUTS[name]
    with Redactor.of([LONG]).applied():
        for begin in range(most // 2 - len(secret), most + 2):
            text = "z" * begin + secret + "y" * 20_000
            shown = shorten(text, most)
            assert len(shown) < 1000
            parts = {secret[n : n + 8] for n in range(len(secret) - 7)}
            assert not any(part in shown for part in parts), shown


def test_a_cut_of_many_secrets():
    """Masks are shorter than keys, so more of a text comes into view; its own end is never shown."""
    with Redactor.of([LONG]).applied():
        for n_before in range(len(LONG)):
            assert not parts_of(cut("z" * n_before + LONG * 5000, 2000))
