"""Text that can be written anywhere: valid UTF-8, whatever a server or a guest sent."""

from __future__ import annotations


def valid_text(text: str) -> str:
    r"""Return `text` without surrogates: pairs become their character, lone ones U+FFFD.

    JSON may spell a character beyond U+FFFF as two escapes, and a stream may cut between them; a
    surrogate that is left cannot be encoded, and kills the xdist worker whose report carries it.
    Everything else is kept, control characters and `\0` too.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
