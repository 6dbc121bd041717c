"""Secrets in texts, values and logs: whole, in pieces, encoded; and ordinary texts, which stay unchanged."""

from __future__ import annotations

import base64
import functools
import html
import json
import logging
import random
import re
import string
import time
import uuid
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.core.redact import HIDDEN, LONGEST_PIECE, Redactor
from pytest_openclaw.core.secret_env import SHORTEST_SECRET, secrets_in_environment
from tests.searching import examples

KEY = "box-0123456789abcdef"
PASSWORD = "Größe/'n\"\\x"
# The forms of a key in a hex dump, a data URL and a page.
LONG_KEY = "Zq7Wx3Ec9Rv5/Tb1Yn8+Um4Ik2Ol6P=a&b<c"
NO_SECRETS = Redactor()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"a {KEY} b", "a [secret] b", id="whole"),
        pytest.param(KEY * 2, "[secret][secret]", id="twice"),
        pytest.param(KEY + KEY[4:], "[secret][secret]", id="twice-the-second-in-part"),
        pytest.param("at box-01234567…", "at [secret]…", id="beginning"),
        pytest.param("a ... 456789abcdef b", "a ... [secret] b", id="end"),
        pytest.param("x0123456789aby", "x[secret]y", id="middle"),
        pytest.param("box-0123456 and 56789abcdef.", "box-0123456 and 56789abcdef.", id="eleven-characters"),
        pytest.param("", "", id="empty"),
    ],
)
def test_texts(text, shown):
    """A key is replaced anywhere, and so is a piece of twelve characters or more, but no shorter one."""
    assert Redactor.of([KEY]).text(text) == shown


@pytest.mark.parametrize(
    "spelled",
    [
        PASSWORD,
        json.dumps(PASSWORD),
        json.dumps(PASSWORD, ensure_ascii=False),
        repr(PASSWORD),
        repr(PASSWORD.encode()),
        quote(PASSWORD, safe=""),
        repr({"said": json.dumps({"said": PASSWORD})}),
        repr(ValueError(f"said {[PASSWORD]}")),
    ],
)
def test_spellings(spelled):
    """A password with odd characters is found as JSON, URLs and `repr` write it."""
    shown = Redactor.of([PASSWORD]).text(f"it is {spelled}.")

    assert HIDDEN in shown
    assert "Gr" not in shown


def _escaped(form: str) -> str:
    return "".join(form % ord(character) for character in LONG_KEY)


def _base64_after(before: str, *, url_safe: bool = False, padded: bool = True) -> str:
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    written = encode(f"{before}{LONG_KEY}".encode()).decode()
    return written if padded else written.rstrip("=")


ENCODED = {
    "base64": _base64_after(""),
    "base64-after-one-byte": _base64_after("a"),
    "base64-after-two-bytes": _base64_after("ab"),
    "base64-without-padding": _base64_after("", padded=False),
    "base64-url-safe": _base64_after("", url_safe=True),
    "base64-url-safe-within": _base64_after("me:", url_safe=True, padded=False),
    "base64-as-json": _base64_after("").replace("/", "\\/"),
    "base64-in-a-url": quote(_base64_after("ab"), safe=""),
    "hex": LONG_KEY.encode().hex(),
    "hex-in-capitals": LONG_KEY.encode().hex().upper(),
    "percent": quote(LONG_KEY, safe=""),
    "percent-in-small-letters": re.sub("%..", lambda found: found[0].lower(), quote(LONG_KEY, safe="")),
    "percent-all": _escaped("%%%02x"),
    "slashes": LONG_KEY.replace("/", "\\/"),
    "unicode": _escaped("\\u%04x"),
    "unicode-in-capitals": _escaped("\\u%04X"),
    "unicode-twice": _escaped("\\\\u%04x"),
    "code-points": _escaped("\\u{%x}"),
    "long-code-points": _escaped("\\U%08x"),
    "bytes": _escaped("\\x%02x"),
    "html": html.escape(LONG_KEY),
    "html-named": LONG_KEY.replace("&", "&amp;").replace("<", "&lt;").replace("/", "&sol;").replace("=", "&equals;"),
    "html-decimal": _escaped("&#%d;"),
    "html-hex": _escaped("&#x%x;"),
    "html-hex-capitals": _escaped("&#X%X;"),
    "html-twice": html.escape(html.escape(LONG_KEY)),
    "mixed": f"{LONG_KEY[:10]}\\u{ord(LONG_KEY[10]):04x}{quote(LONG_KEY[11:], safe='')}",
}  # fmt: skip


@pytest.mark.parametrize("written", ENCODED.values(), ids=ENCODED)
def test_encodings(written):
    """A secret is found in every encoding that reports, logs, pages and programs give it."""
    shown = Redactor.of([LONG_KEY]).text(f'{{"it": "{written}", "n": 1}}')

    before, hidden, after = shown.partition(HIDDEN)
    # At one alignment of base64, the first character belongs to what is before as well.
    assert (hidden, after) == (HIDDEN, '", "n": 1}')
    assert len(before.removeprefix('{"it": "')) <= len("bWU6") + 2


def test_a_secret_in_a_form():
    """A form sends a space as a plus."""
    secret = "9x correct 7y horse/battery"

    assert Redactor.of([secret]).text(f"a={quote_plus(secret)}&b") == "a=[secret]&b"


SPELLINGS = [
    str,
    lambda text: json.dumps(json.dumps(text)),
    lambda text: quote(text, safe=""),
    html.escape,
    lambda text: text.encode().hex(),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    lambda text: "".join(f"&#{ord(character)};" for character in text),
]


def _check_no_piece_is_left(secret, start, around, spelling):
    piece = secret[start : start + LONGEST_PIECE + 1]

    shown = Redactor.of([secret]).text(spelling(f"{around}{piece}{around}"))

    assert HIDDEN in shown
    assert piece not in shown


SECRETS = st.text(
    st.sampled_from(string.ascii_letters + string.digits + "/+=&<>'\"\\%ö€😀 -_"), min_size=24, max_size=40
).filter(lambda text: min(len(set(text[at : at + 12])) for at in range(len(text) - 11)) > 4)


@examples(50)
@given(
    secret=SECRETS,
    start=st.integers(0, 12),
    around=st.text(st.sampled_from("ab.… \"'&%")),
    spelling=st.sampled_from(SPELLINGS),
)
def test_no_piece_is_left(secret, start, around, spelling):
    """Twelve characters of a secret are replaced, whatever surrounds them and in every encoding."""
    _check_no_piece_is_left(secret, start, around, spelling)


@given(
    secret=st.text(st.sampled_from("ab.…'\\"), min_size=SHORTEST_SECRET, max_size=20),
    around=st.text(st.sampled_from("ab.… '\\")),
)
def test_no_whole_secret_is_left(secret, around):
    """Whatever surrounds it, the whole secret is gone, however few different characters it has."""
    assert secret not in Redactor.of([secret]).text(around + secret + around)


PARTS_OF_ESCAPES = ["\\", "%", "&", "#", ";", "u", "x", "{", "}", "C3", "e", "8", "amp", "D83D", "\n"]


@given(st.lists(st.sampled_from(PARTS_OF_ESCAPES)).map("".join))
def test_any_text_with_escapes(text):
    """Text that looks like an escape and is none hides nothing."""
    assert Redactor.of([LONG_KEY]).text(text) == text


def test_short_texts_are_no_secrets():
    """A local server's dummy key would otherwise vanish from every row."""
    assert Redactor.of(["ollama"]).text("ollama") == "ollama"


def test_a_passphrase_is_secret_as_a_whole():
    """Its words are ordinary ones."""
    redactor = Redactor.of(["correct horse battery staple"])

    assert redactor.text("it is correct horse battery staple.") == "it is [secret]."
    assert redactor.text("That is correct, horse battery") == "That is correct, horse battery"
    assert redactor.text("a correct horse battery") == "a correct horse battery"


def test_the_longest_goes_first():
    """A key that begins like another one leaves no rest."""
    assert Redactor.of([KEY, KEY + "-and-more"]).text(f"{KEY}-and-more") == HIDDEN


def test_a_common_prefix_of_keys_is_no_secret():
    """Otherwise no text about such keys could be read, and half of another key would stay."""
    redactor = Redactor.of(["sk-ant-api03-Ab3dEf6hIj9kLm2nOp5qRs8tUv1w"])

    assert redactor.text("keys begin with sk-ant-api03- here") == "keys begin with sk-ant-api03- here"
    assert redactor.text("sk-ant-api03-Zy9xWv7uTs5rQp3oNm1lKj8iHg6f") == HIDDEN


def test_a_dull_part_of_a_secret():
    """A run of one character occurs in other texts too; within the secret it is replaced as well."""
    redactor = Redactor.of(["sk-live-424242424242"])

    assert redactor.text("bad key sk-live-424242424242") == "bad key [secret]"
    assert redactor.text("4242 4242 424242424242") == "4242 4242 424242424242"


def test_values():
    """Keys and items of JSON values are searched, and tuples stay tuples."""
    value = {f"a {KEY}": [KEY, 1, None, (KEY,)]}

    assert Redactor.of([KEY]).value(value) == {"a [secret]": [HIDDEN, 1, None, (HIDDEN,)]}


def test_its_repr_shows_no_secret():
    """A traceback with locals shows it."""
    assert repr(Redactor.of([KEY])) == "Redactor()"


# --- keys of published formats ------------------------------------------------------------------------


def made_up(length: int, characters: str = string.ascii_letters + string.digits) -> str:
    """A text as random as a key, the same in each run, and in no file as a whole."""
    return "".join(random.Random(length).choices(characters, k=length))


JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","iat":1516239022}', bytes(range(32)))
)
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
    "private-key": f"-----BEGIN RSA PRIVATE KEY-----\n{made_up(300)}\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("key", PUBLISHED.values(), ids=PUBLISHED)
@pytest.mark.parametrize("around", ["a {} b", "KEY={}", '{{"key": "{}"}}', "line\\n{}\\n", "a%3D{}&b"])
def test_published_formats(key, around):
    """A key of a published format is found though it was not registered."""
    assert NO_SECRETS.text(around.format(key)) == around.format(HIDDEN)


def test_bearer_tokens():
    """The token alone is replaced, whatever its form."""
    token = made_up(32, string.hexdigits.lower())

    assert NO_SECRETS.text(f"-H 'Authorization: Bearer {token}' x") == "-H 'Authorization: Bearer [secret]' x"


# --- the environment ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        pytest.param("WEATHER_API_KEY", "3f9c2a7e5b1d4860", ["3f9c2a7e5b1d4860"], id="key"),
        pytest.param("github_token", "a1B2c3D4e5", ["a1B2c3D4e5"], id="small-letters"),
        pytest.param("npm_config__authToken", "q9w8e7r6t5", ["q9w8e7r6t5"], id="camel-case"),
        pytest.param("HEROKU_API_KEY", "01234567-89ab-cdef-0123-456789abcdef", ["01234567-89ab-cdef-0123-456789abcdef"], id="uuid"),
        pytest.param("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI9K7MDENGbPxRfiCY/zxcvb0987", ["/wJalrXUtnFEMI9K7MDENGbPxRfiCY/zxcvb0987"], id="begins-with-a-slash"),
        pytest.param("DB_PASSWORD", "hunter22", ["hunter22"], id="short-password"),
        pytest.param("DB_PASSWORD", "correct horse battery staple", ["correct horse battery staple"], id="passphrase"),
        pytest.param("MYSQL_PWD", "s3cr3t!!", ["s3cr3t!!"], id="mysql"),
        pytest.param("AZURE_DEVOPS_PAT", "x7k2m9q4w1", ["x7k2m9q4w1"], id="pat"),
        pytest.param("DATABASE_URL", "postgres://me:p%40ss-w0rd!@db/x", ["p@ss-w0rd!"], id="password-in-an-address"),
        pytest.param("SENTRY_DSN", "https://0a1b2c3d4e5f@sentry.example/1", ["0a1b2c3d4e5f"], id="key-in-an-address"),
        pytest.param("DEPLOY_KEY", "-----BEGIN KEY-----\nAb3dEf6hIj\nkL9mN0pQ==\n-----END KEY-----\n", ["Ab3dEf6hIj", "kL9mN0pQ=="], id="pem"),
        pytest.param("CLOUD_CREDENTIALS", '{"type": "service_account", "private_key": "k9J8h7G6f5", "auth_uri": "https://a.example/auth"}', ["k9J8h7G6f5"], id="json"),
        pytest.param("KEY", "true", [], id="boolean"),
        pytest.param("TOKEN_LIMIT", "4096", [], id="limit"),
        pytest.param("MAX_TOKENS", "1000000000", [], id="number"),
        pytest.param("TOKEN_LIMIT", "x7k2m9q4w1", [], id="about-a-token"),
        pytest.param("SSH_KEY", "/home/ann/.ssh/id_ed25519", [], id="path"),
        pytest.param("SSH_KEY", "/home/ann/applicationdefaultcredentials.json", [], id="path-with-a-long-name"),
        pytest.param("API_KEY_FILE", "k9J8h7G6f5", [], id="file"),
        pytest.param("MY_SECRET", "~/secrets/2024/my-secret.key", [], id="path-at-home"),
        pytest.param("MY_SECRET", "C:\\Users\\ann\\secret.txt", [], id="windows-path"),
        pytest.param("S3_KEY", "uploads/2024/report.csv", [], id="key-of-a-thing"),
        pytest.param("CACHE_KEY", "node-modules-v3", [], id="name"),
        pytest.param("AUTH", "ann.smith@example.com", [], id="user"),
        pytest.param("CREDENTIALS", "application-default", [], id="words"),
        pytest.param("POSTGRES_PASSWORD", "postgres", [], id="word-for-a-password"),
        pytest.param("DATABASE_URL", "postgres://postgres:postgres@localhost:5432/db", [], id="word-in-an-address"),
        pytest.param("PWD", "/home/ann2/work", [], id="current-folder"),
        pytest.param("API_KEY", "xxxxxxxxxxxxxxxx", [], id="placeholder"),
        pytest.param("API_KEY", "${OTHER_KEY_2}", [], id="reference"),
        pytest.param("STRIPE_PUBLISHABLE_KEY", "k9J8h7G6f5k9J8h7G6f5", [], id="public"),
        pytest.param("GIT_AUTHOR_NAME", "Ann B. Smith-Jones3x", [], id="author"),
        pytest.param("TOKENIZERS_PARALLELISM", "k9J8h7G6f5", [], id="word-that-begins-so"),
        pytest.param("MODEL", "k9J8h7G6f5", [], id="other-name"),
        pytest.param("TOKEN_URL", "https://a.example/oauth/9x8y7z", [], id="address"),
        pytest.param("AUTH", "https://a.example/oauth/9x8y7z", [], id="address-by-its-value"),
    ],
)  # fmt: skip
def test_the_environment(name, value, secrets):
    """The values of variables whose names say so are secret, unless they are ordinary texts."""
    assert list(secrets_in_environment({name: value})) == secrets


def test_a_run_knows_both():
    """One redactor knows the secrets of a run's providers and those of the environment."""

    class Known:
        secrets = (KEY,)

    redactor = Redactor.of_run([Known()], {"OTHER_TOKEN": "a1B2c3D4e5"})  # type: ignore[list-item]

    assert redactor.text(f"{KEY} a1B2c3D4e5 z") == "[secret] [secret] z"


# --- ordinary texts -----------------------------------------------------------------------------------

# Values that may be in an environment beside real keys, and must not be masked.
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


def ordinary_texts(count: int) -> list[str]:
    """Prose, code, paths, ids, digests and encoded texts, the same in each run."""
    rng = random.Random(2)
    words = " ".join([*FIXED, *shipped_texts()]).split()

    def prose() -> str:
        return " ".join(rng.choices(words, k=rng.randint(3, 60)))

    def identifier() -> str:
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))

    makers = [
        prose,
        lambda: json.dumps(
            {"name": "exec", "arguments": json.dumps({"command": prose(), "id": identifier()})}
        ),
        lambda: f"commit {rng.randbytes(20).hex()}\nAuthor: Ann <ann@example.com>\n\n    {prose()}",
        lambda: f"{rng.randbytes(32).hex()}  /srv/{rng.choice(words)}/{identifier()}.tar.gz",
        lambda: base64.b64encode(prose().encode()).decode(),
        lambda: (
            f"def f_{rng.getrandbits(32):x}(token_limit=4096):\n    return '{quote(prose())}' % {rng.random()}\n"
        ),
        lambda: html.escape(prose()) + "&nbsp;&#8212;" + identifier(),
        lambda: prose().encode().hex(),
        lambda: f"data:image/png;base64,{base64.b64encode(rng.randbytes(200)).decode()}",
    ]
    return [rng.choice(makers)() for _ in range(count)]


def shipped_texts() -> list[str]:
    """Prompts, fixtures and expectations of the shipped suites, and the labelled replies."""
    root = Path(__file__).parents[3]
    suites = [path.read_text("utf-8") for path in sorted((root / "benchmarks").glob("prompts_*.toml"))]
    corpus = [path.read_text("utf-8") for path in sorted((root / "tests" / "corpus").glob("replies_*.jsonl"))]
    return [line for text in (*suites, *corpus) for line in text.splitlines()]


def _masked(texts: list[str]) -> list[str]:
    redactor = Redactor.of(secrets_in_environment(ENVIRONMENT))
    return [text for text in texts if redactor.text(text) != text]


def test_ordinary_texts_stay():
    """With some twenty secrets in the environment, no ordinary text has a mask."""
    assert _masked([*FIXED, *shipped_texts(), *ordinary_texts(3_000)]) == []


HOSTILE = [
    "\\",
    "%41",
    "&amp;",
    "sk-",
    "_sk-a",
    "eyJaaaaaaaaaab.",
    "Bearer ",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    KEY,
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_long(unit):
    """The time grows with the length of the text alone; its square would take minutes here."""
    began = time.monotonic()

    Redactor.of([KEY, LONG_KEY]).text(unit * (2**17 // len(unit)))

    assert time.monotonic() - began < 20


# --- logs ---------------------------------------------------------------------------------------------


def test_logs(caplog):
    """Messages, arguments and tracebacks of log records are searched while the redactor is over them."""
    log = logging.getLogger("plugin.http")
    header = base64.b64encode(f"me:{KEY}".encode()).decode()
    before = logging.getLogRecordFactory()

    with caplog.at_level(logging.DEBUG), Redactor.of([KEY, header]).over_logs():
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


def test_a_factory_that_came_later_stays():
    """Another plugin's record factory is not taken away."""
    before = logging.getLogRecordFactory()
    try:
        with Redactor.of([KEY]).over_logs():
            later = functools.partial(before)
            logging.setLogRecordFactory(later)
        assert logging.getLogRecordFactory() is later
    finally:
        logging.setLogRecordFactory(before)
