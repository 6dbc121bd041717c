"""Small images for the tests, written with only the standard library."""

import struct
import zlib

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"
GIF = b"GIF89a\x01\x00\x01\x00"
WEBP = b"RIFF\x1a\x00\x00\x00WEBPVP8L"


def png(*, width=2, height=2, gray=128):
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\x00" + bytes([gray]) * width) * height
    return PNG_MAGIC + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
