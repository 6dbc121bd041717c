"""Base URLs as people write them → one form; who is on this machine; what in a URL is secret."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_openclaw.core.errors import TargetError

OLLAMA_PORT = 11434
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server's API begins.

    Attributes:
        base_url: such as `http://127.0.0.1:11434/v1`; without user info, so that it may be shown.
        userinfo: `user:password` as it stood in the URL, percent signs and all; secret.
    """

    base_url: str
    userinfo: str = field(default="", repr=False)

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def is_public(self) -> bool:
        """Whether anybody could mean this server: its host is a full name or an address of the internet."""
        host = (urlsplit(self.base_url).hostname or "").rstrip(".")
        try:
            return ipaddress.ip_address(host.partition("%")[0]).is_global
        except ValueError:
            return "." in host and not is_loopback(host)

    @property
    def root_url(self) -> str:
        """The base without its `/v1`, where a server's own routes begin."""
        return self.base_url.removesuffix("/v1")

    @property
    def server(self) -> str:
        """What the addresses of one server's APIs have in common; `localhost` is 127.0.0.1."""
        parts = urlsplit(self.root_url)
        if parts.hostname != "localhost":
            return self.root_url
        return parts._replace(netloc=parts.netloc.replace("localhost", "127.0.0.1", 1)).geturl()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The password, as written, as meant and as sent; the user's name where it stands alone."""
        user, colon, password = self.userinfo.partition(":")
        secret = password if colon else user
        sent = (self.basic_authorization() or "").removeprefix("Basic ")
        return tuple(dict.fromkeys((secret, unquote(secret), sent))) if secret else ()

    def basic_authorization(self) -> str | None:
        """The header that stands for the user info."""
        if not self.userinfo:
            return None
        user, _, password = self.userinfo.partition(":")
        credentials = f"{unquote(user)}:{unquote(password)}".encode()
        return f"Basic {base64.b64encode(credentials).decode()}"


def parse_address(text: str, *, source: str) -> Address:
    """Return the address that `text` means; `http://` may be left out, and `/v1` where there is no path.

    Args:
        text: a URL or `host[:port][/path]`.
        source: where the user wrote it, for the error.

    Raises:
        TargetError: it is no HTTP address. The text names `source` and repeats nothing of the address,
            which may hold a password.
    """
    written = text.strip()
    try:
        parts = urlsplit(written if "://" in written else f"http://{written}")
        host, port = parts.hostname, parts.port
    except ValueError:  # a port or an IPv6 address that is none
        host, parts, port = None, urlsplit(""), None
    if (
        parts.scheme not in _DEFAULT_PORTS
        or not host
        or port == 0
        or not written.isprintable()
        or " " in written
    ):
        raise TargetError(
            f"{source}: this is no http:// or https:// address. Write for example http://127.0.0.1:8000/v1."
        )
    if "?" in written or "#" in written:
        raise TargetError(f"{source}: the address goes on after its path, with ? or #. Leave that part out.")
    return Address(base_url=_base_url(parts, host, port), userinfo=parts.netloc.rpartition("@")[0])


def parse_ollama_host(text: str) -> Address:
    """Return the address that Ollama's own variable `OLLAMA_HOST` means to Ollama's client.

    `host`, `host:port`, `:port`, `[::1]:port` and `scheme://…` are read as in Ollama's `envconfig`: the port
    is 11434 unless a scheme is written, a bare scheme stands for its own port, and an unspecified host,
    which is something to listen on, for this machine.

    Raises:
        TargetError: it is none of these.
    """
    written = text.strip(" \t\r\n\"'")
    if written == "ollama.com":
        return parse_address("https://ollama.com", source="OLLAMA_HOST")
    scheme, has_scheme, rest = written.rpartition("://")
    userinfo, at, hostport = rest.partition("/")[0].rpartition("@")
    path = rest.removeprefix(rest.partition("/")[0]).rstrip("/").removesuffix("/v1")
    host, port = _split_port(hostport)
    if host in ("", "0.0.0.0", "[::]"):  # noqa: S104 - read, not bound
        host = "127.0.0.1"
    if not has_scheme:
        scheme, port = "http", port or str(OLLAMA_PORT)
    port = f":{port}" if port else ""
    return parse_address(f"{scheme}://{userinfo}{at}{host}{port}{path}/v1", source="OLLAMA_HOST")


def is_loopback(host: str) -> bool:
    """Whether a host, without brackets, names this machine and nothing else."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of a URL, the default port filled in."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _split_port(hostport: str) -> tuple[str, str]:
    if hostport.count(":") > 1 and not hostport.startswith("["):
        return f"[{hostport}]", ""
    host, colon, port = hostport.rpartition(":")
    if not colon or "]" in port:
        return hostport, ""
    return host, port


def _base_url(parts: SplitResult, host: str, port: int | None) -> str:
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{shown_host}{shown_port}{parts.path.rstrip('/') or '/v1'}"
