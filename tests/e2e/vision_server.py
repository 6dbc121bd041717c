"""A real llama.cpp that takes pictures and sees nothing: `python vision_server.py WEIGHTS FOLDER` prints its address.

Its vision model has the form of LLaVA's and weights of zero, written into the folder. It decodes each picture and
counts it as tokens, as one with real weights does.
"""

from __future__ import annotations

import struct
import sys
import threading
from pathlib import Path
from typing import Any

TEXT_WIDTH = 576
"""Of an embedding of SmolLM2 with 135 million weights."""
_WIDTH, _INNER, _LAYERS, _IMAGE, _PATCH = 64, 128, 2, 84, 14
N_TOKENS = (_IMAGE // _PATCH) ** 2
"""Of a picture, without what the chat template puts around it."""
_UINT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 6, 7, 8, 9
_ALIGNMENT = 32


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _value(value: Any) -> bytes:
    """Return a value of the header with its type."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    return struct.pack("<IIQ", _ARRAY, _FLOAT32, len(value)) + struct.pack(f"<{len(value)}f", *value)


def _shapes() -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor, the fastest dimension first."""
    shapes: dict[str, tuple[int, ...]] = {
        "v.class_embd": (_WIDTH,),
        "v.patch_embd.weight": (_PATCH, _PATCH, 3, _WIDTH),
        "v.position_embd.weight": (_WIDTH, N_TOKENS + 1),
        "mm.0.weight": (_WIDTH, TEXT_WIDTH),
        "mm.0.bias": (TEXT_WIDTH,),
        "mm.2.weight": (TEXT_WIDTH, TEXT_WIDTH),
        "mm.2.bias": (TEXT_WIDTH,),
    }
    norms = ["v.pre_ln", "v.post_ln"]
    for layer in range(_LAYERS):
        block = f"v.blk.{layer}"
        norms += [f"{block}.ln1", f"{block}.ln2"]
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            shapes |= {f"{block}.{name}.weight": (_WIDTH, _WIDTH), f"{block}.{name}.bias": (_WIDTH,)}
        shapes |= {f"{block}.ffn_up.weight": (_WIDTH, _INNER), f"{block}.ffn_up.bias": (_INNER,)}
        shapes |= {f"{block}.ffn_down.weight": (_INNER, _WIDTH), f"{block}.ffn_down.bias": (_WIDTH,)}
    return shapes | {f"{norm}.{part}": (_WIDTH,) for norm in norms for part in ("weight", "bias")}


def write_vision_model(path: Path) -> None:
    """Write a vision model of zeros as GGUF, version 3."""
    header = {
        "general.architecture": "clip",
        "clip.has_vision_encoder": True,
        "clip.has_llava_projector": True,
        "clip.projector_type": "mlp",
        "clip.use_gelu": True,
        "clip.vision.image_size": _IMAGE,
        "clip.vision.patch_size": _PATCH,
        "clip.vision.embedding_length": _WIDTH,
        "clip.vision.feed_forward_length": _INNER,
        "clip.vision.projection_dim": TEXT_WIDTH,
        "clip.vision.attention.head_count": 4,
        "clip.vision.attention.layer_norm_epsilon": 1e-5,
        "clip.vision.block_count": _LAYERS,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
    }
    shapes = _shapes()
    written = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(header))
    written += b"".join(_text(key) + _value(value) for key, value in header.items())
    offset = 0
    for name, shape in shapes.items():
        written += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        n_bytes = 4
        for length in shape:
            n_bytes *= length
        offset += -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
    written += bytes(-len(written) % _ALIGNMENT)
    path.write_bytes(written + bytes(offset))


def main() -> None:
    """Serve until the input ends."""
    import xllamacpp

    weights, folder = sys.argv[1:]
    vision = Path(folder) / "mmproj.gguf"
    write_vision_model(vision)
    params = xllamacpp.CommonParams()
    params.model.path, params.mmproj.path, params.mmproj_use_gpu = weights, str(vision), False
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = 2048, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja, params.ui, params.fit_params = True, False, False
    params.offline, params.cache_ram_mib, params.verbosity = True, 0, 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    waiting = threading.Thread(target=sys.stdin.read)
    waiting.start()
    waiting.join()


if __name__ == "__main__":
    main()
