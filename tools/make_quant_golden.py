#!/usr/bin/env python3
"""Writes tests/golden/quants/ and tests/golden/blake3.txt: what independent programs make of packed blocks.

Needs PyPI gguf, numpy and blake3 in a virtual environment. Run: tools/make_quant_golden.py tests/golden

quants/<TYPE>.bin   packed blocks, then the f32 values the gguf package expands them to
quants/input.f32    512 f32 values, for quantising
quants/<TYPE>.packed  input.f32 as the gguf package packs it (types whose rounding it defines)
blake3.txt          "length hex-digest" of the official test input (bytes 0..250 repeated)
"""
import pathlib
import sys

import numpy as np
from blake3 import blake3
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

SIZES = {T.F16: (1, 2), T.BF16: (1, 2), T.Q4_0: (32, 18), T.Q4_1: (32, 20), T.Q5_0: (32, 22), T.Q5_1: (32, 24),
         T.Q8_0: (32, 34), T.Q4_K: (256, 144), T.Q5_K: (256, 176), T.Q6_K: (256, 210)}
READ_ONLY = {T.Q2_K: (256, 84), T.Q3_K: (256, 110), T.IQ4_NL: (32, 18), T.IQ4_XS: (256, 136), T.MXFP4: (32, 17)}
# Byte offsets of f16 numbers inside a block, kept finite.
HALVES = {T.F16: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.Q2_K: [80, 82], T.Q3_K: [108], T.IQ4_NL: [0],
          T.IQ4_XS: [0]}


def random_blocks(rng, kind, count):
    """Random bytes; every f16 in them is a random finite number."""
    size = (SIZES | READ_ONLY)[kind][1]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES.get(kind, []):
        halves = (rng.standard_normal(count) * 10.0 ** rng.integers(-7, 4, count)).astype(np.float16)
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(count, 2)
    if kind == T.BF16:
        values = (rng.standard_normal(count) * 10.0 ** rng.integers(-30, 30, count)).astype(np.float32)
        blocks = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(count, 2)
    return blocks


def main():
    golden = pathlib.Path(sys.argv[1])
    folder = golden / "quants"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240)
    for kind, (elems, size) in SIZES.items():
        blocks = random_blocks(rng, kind, max(4, 512 // elems))
        values = dequantize(blocks, kind).astype(np.float32)
        (folder / f"{kind.name}.bin").write_bytes(blocks.tobytes() + values.tobytes())

    read_only_rng = np.random.default_rng(20241)
    for kind, (elems, size) in READ_ONLY.items():
        # MXFP4: 256 blocks whose exponents are every byte there is, the subnormal scales among them.
        blocks = random_blocks(read_only_rng, kind, 256 if kind == T.MXFP4 else max(4, 512 // elems))
        if kind == T.MXFP4:
            blocks[:, 0] = np.arange(256)
        values = dequantize(blocks, kind).astype(np.float32)
        (folder / f"{kind.name}.bin").write_bytes(blocks.tobytes() + values.tobytes())

    values = rng.standard_normal(512).astype(np.float32) * 0.05
    values[0:32] = 0
    values[32:64] = 1.25                       # all equal
    values[64:96] = np.abs(values[64:96]) + 3  # all positive, far from zero
    values[96:128] *= 1e-6                     # scale below the normal f16 range
    values[130], values[200] = 9.0, -7.5       # outliers
    (folder / "input.f32").write_bytes(values.tobytes())
    for kind in (T.BF16, T.F16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
        packed = quantize(values.reshape(1, -1), kind)
        (folder / f"{kind.name}.packed").write_bytes(packed.tobytes())

    lengths = [0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096,
               4097, 5120, 5121, 6144, 6145, 7168, 7169, 8192, 8193, 16384, 31744, 102400]
    lines = [f"{n} {blake3(bytes(i % 251 for i in range(n))).hexdigest()}" for n in lengths]
    (golden / "blake3.txt").write_text("\n".join(lines) + "\n")


main()
