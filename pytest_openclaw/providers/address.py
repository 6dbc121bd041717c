"""Parses base URLs into one form; detects servers on this machine and secrets in URLs."""

from __future__ import annotations

import base64
import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from pytest_openclaw.util.errors import TargetError

OLLAMA_PORT = 11434
_VERSION = re.compile(r"/v1(beta|alpha)?\Z")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
_UNSPECIFIED = re.compile(r"\A(0\.0\.0\.0|\[::\])?(?=:\d|\Z)")
_PORT = re.compile(r":\d+\Z")
_ROUTE = re.compile(
    r"(?:(?:(?:/chat)?/completions|/responses|/messages|/api/(?:chat|generate)"
    r"|/models/[^/]+:(?:streamG|g)enerateContent)/*)+\Z"
)


@dataclass(frozen=True, kw_only=True)
class Address:
    """The base address of a server's API.

    Attributes:
        base_url: such as `http://127.0.0.1:11434/v1`; without user info, safe to show.
        userinfo: `user:password` as written in the URL, with percent escapes; secret.
    """

    base_url: str
    userinfo: str = field(default="", repr=False)

    @cached_property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @cached_property
    def is_public(self) -> bool:
        """Whether the host is a full name or a public address, not an address of a private network."""
        host = (urlsplit(self.base_url).hostname or "").rstrip(".")
        try:
            return ipaddress.ip_address(host.partition("%")[0]).is_global
        except ValueError:
            return "." in host and not is_loopback(host)

    @cached_property
    def root_url(self) -> str:
        """The base URL without its version, such as `/v1`: the root of a server's own routes."""
        return _VERSION.sub("", self.base_url)

    @cached_property
    def server(self) -> str:
        """The common part of the addresses of a server's APIs; `localhost` becomes 127.0.0.1."""
        parts = urlsplit(self.root_url)
        if parts.hostname != "localhost":
            return self.root_url
        return parts._replace(netloc=parts.netloc.replace("localhost", "127.0.0.1", 1)).geturl()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The password as written, decoded and as sent; without a password, the user's name."""
        user, colon, password = self.userinfo.partition(":")
        secret = password if colon else user
        sent = (self.basic_authorization() or "").removeprefix("Basic ")
        return tuple(dict.fromkeys((secret, unquote(secret), sent))) if secret else ()

    def basic_authorization(self) -> str | None:
        """The `Authorization` header for the user info; None without one."""
        if not self.userinfo:
            return None
        user, _, password = self.userinfo.partition(":")
        credentials = f"{unquote(user)}:{unquote(password)}".encode()
        return f"Basic {base64.b64encode(credentials).decode()}"


def parse_address(text: str, *, source: str) -> Address:
    """Parse an address; `http://` is optional, and so is `/v1` if there is no path.

    The path of a request, such as `/chat/completions`, is left out, because providers add it.

    Raises:
        TargetError: the text is not an HTTP address. The message names `source` and quotes no part of the
            address, which may contain a password.
    """
    written = text.strip()
    try:
        parts = urlsplit(written if "://" in written else f"http://{written}")
        host, port = parts.hostname, parts.port
    except ValueError:  # an invalid port or IPv6 address
        parts, host, port = urlsplit(""), None, None
    is_plain = written.isprintable() and not set(" ?#") & set(written)
    if parts.scheme not in _DEFAULT_PORTS or not host or port == 0 or not is_plain:
        raise TargetError(
            f"{source}: this is not an http:// or https:// address without a query. Write for example "
            "http://127.0.0.1:8000/v1."
        )
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    path = _ROUTE.sub("", parts.path).rstrip("/") or "/v1"
    base_url = f"{parts.scheme}://{shown_host}{shown_port}{path}"
    return Address(base_url=base_url, userinfo=parts.netloc.rpartition("@")[0])


def parse_ollama_host(text: str) -> Address:
    """Parse Ollama's variable `OLLAMA_HOST`: `host`, `host:port`, `:port` or a whole address.

    As in Ollama's client, the port is 11434 unless there is a scheme, and an unspecified host, which is meant
    for listening, means this machine.

    Raises:
        TargetError: the text has none of these forms.
    """
    scheme, has_scheme, rest = text.strip(" \t\r\n\"'").rpartition("://")
    userinfo, at, hostport = rest.partition("/")[0].rpartition("@")
    path = rest[len(userinfo + at + hostport) :].rstrip("/").removesuffix("/v1")
    hostport = _UNSPECIFIED.sub("127.0.0.1", hostport)
    if not has_scheme and not _PORT.search(hostport):
        hostport += f":{OLLAMA_PORT}"
    return parse_address(f"{scheme or 'http'}://{userinfo}{at}{hostport}{path}/v1", source="OLLAMA_HOST")


def is_loopback(host: str) -> bool:
    """Whether a host, without brackets, names only this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def check_network(address: Address, environ: Mapping[str, str]) -> None:
    """Raise `TargetError` for a proxy or certificates of the environment that the HTTP library cannot use."""
    is_far = not address.is_loopback
    if (path := environ.get("SSL_CERT_FILE")) and (is_far or address.base_url.startswith("https:")):
        try:
            ssl.create_default_context(cafile=path)
        except OSError as error:
            why = f"no certificate can be read from it: {error.strerror}"
            raise TargetError(f"SSL_CERT_FILE: {why}. Name a file of certificates in PEM form.") from error
    for variable, value in environ.items() if is_far else ():
        is_socks = value.startswith("socks5") and find_spec("socksio") is not None
        if value and variable.lower() in _PROXY_VARIABLES and not is_socks:
            # The library does not accept blanks around it.
            parse_address(value if value == value.strip() else "", source=f"the proxy {variable}")
