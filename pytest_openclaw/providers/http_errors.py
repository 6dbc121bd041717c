"""Why there is no HTTP answer, or only its beginning; named as in httpx2, which few sessions load."""


class HttpError(Exception):
    """There is no answer, or only its beginning."""


class UrlError(HttpError):
    """The URL is none, or of no known scheme."""


class ConnectTimeout(HttpError):
    """No connection was opened in time."""


class NetworkError(HttpError):
    """The connection broke."""


class ConnectError(NetworkError):
    """No connection could be opened; the cause says why."""


class ProxyError(HttpError):
    """The proxy opens no connection."""


class ProtocolError(HttpError):
    """The connection was closed before the answer's end."""


class BrokenFraming(ProtocolError):
    """The server sent bytes that are not HTTP."""


class DecodingError(HttpError):
    """The body's compression is broken."""
