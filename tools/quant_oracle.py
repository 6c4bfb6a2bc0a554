#!/usr/bin/env python3
"""Compares the error of Doppler's quantisers with that of ggml's on the same matrices.

Needs PyPI gguf and numpy, g++ and the unpacked source package llama-cpp-python (0.3.36), of which only ggml-quants.c is
built, in a temporary folder. Run:

  tools/quant_oracle.py .../llama_cpp_python-0.3.36/vendor/llama.cpp/ggml [MODEL.gguf ...]

Matrices: every 7th of each model, expanded to F32 (whole blocks of 256 taken from it in order), and synthetic ones.
Prints for each type the ratio of the squared errors, over all values and for the worst matrix, then the same with each
error weighted by the size of its value. Exits with 1 if a ratio over all values of a set exceeds 1.02.
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFReader
from gguf.quants import dequantize

TYPES = {T.Q8_0: (32, 34), T.Q6_K: (256, 210), T.Q5_K: (256, 176), T.Q4_K: (256, 144)}
LIMIT = 1.02
MATRIX_VALUES = 1 << 20  # at most, of each
STUBS = """
#include <stddef.h>
#include <stdlib.h>
void ggml_abort(const char* file, int line, const char* fmt, ...) { abort(); }
size_t ggml_row_size(int type, long long n) { return n / sizes_elems(type) * sizes_bytes(type); }
size_t ggml_type_size(int type) { return sizes_bytes(type); }
const char* ggml_type_name(int type) { return "?"; }
"""


def sizes(function, index):
    cases = "".join(f"case {int(kind)}: return {TYPES[kind][index]};" for kind in TYPES)
    return f"static int {function}(int type) {{ switch (type) {{ {cases} default: abort(); }} }}\n"


def build_ggml(ggml, folder):
    stubs = folder / "stubs.c"
    stubs.write_text("#include <stdlib.h>\n" + sizes("sizes_elems", 0) + sizes("sizes_bytes", 1) + STUBS)
    library = folder / "libggml_quants.so"
    # As its users build it on x86: its error depends on fused multiply-add by less than 0.01 %.
    subprocess.run(["gcc", "-O2", "-march=native", "-fPIC", "-shared", f"-I{ggml}/include", f"-I{ggml}/src",
                    f"{ggml}/src/ggml-quants.c", str(stubs), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def build_doppler(folder):
    root = pathlib.Path(__file__).resolve().parent.parent
    library = folder / "libdoppler_quants.so"
    base = root / "src" / "base"
    subprocess.run(["g++", "-std=c++20", "-O3", "-fPIC", "-shared", "-fno-trapping-math", "-fno-math-errno",
                    "-fno-signed-zeros", f"-I{root}/src", str(root / "tools" / "quant_oracle.cc")]
                   + [str(base / name) for name in ("dtype.cc", "quants.cc", "quantize.cc", "quantize_k.cc")]
                   + ["-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def pack_ggml(library, kind, values):
    out = np.empty(values.size // TYPES[kind][0] * TYPES[kind][1], np.uint8)
    function = getattr(library, {T.Q8_0: "quantize_q8_0"}.get(kind, f"quantize_q{kind.name[1]}_K"))
    function.restype = ctypes.c_size_t
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    function(values.ctypes.data, out.ctypes.data, values.size // 256, 256, None)
    return out


def pack_doppler(library, kind, values):
    out = np.empty(values.size // TYPES[kind][0] * TYPES[kind][1], np.uint8)
    function = library.doppler_quantize
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    assert function(kind.name.encode(), values.ctypes.data, values.size, out.ctypes.data) == 1
    return out


def errors(kind, packed, values):
    back = dequantize(packed.reshape(-1, TYPES[kind][1]), kind).reshape(-1).astype(np.float64)
    squares = (back - values) ** 2
    return squares.sum(), (squares * np.abs(values)).sum()


def model_matrices(path):
    tensors = [t for t in GGUFReader(path).tensors if len(t.shape) == 2]
    for tensor in tensors[::7]:
        values = dequantize(tensor.data, tensor.tensor_type).reshape(-1).astype(np.float32)
        values = values[:MATRIX_VALUES]
        yield tensor.name, np.ascontiguousarray(values[:values.size // 256 * 256])


def synthetic_matrices():
    rng = np.random.default_rng(1)
    yield "normal", (rng.standard_normal(MATRIX_VALUES) * 0.02).astype(np.float32)
    yield "student t, 4 degrees", (rng.standard_t(4, MATRIX_VALUES) * 0.02).astype(np.float32)
    yield "uniform", rng.uniform(-0.05, 0.05, MATRIX_VALUES).astype(np.float32)
    yield "all positive", (rng.standard_normal(MATRIX_VALUES) * 0.02 + 0.1).astype(np.float32)
    rows = np.exp(rng.standard_normal((MATRIX_VALUES // 256, 8, 1)))
    yield "groups of unlike sizes", (rng.standard_normal((MATRIX_VALUES // 256, 8, 32)) * rows).reshape(-1).astype(np.float32)


def compare(name, matrices, ours, theirs):
    total = {kind: np.zeros(4) for kind in TYPES}
    worst = {kind: (0.0, "") for kind in TYPES}
    count = 0
    for label, values in matrices:
        count += 1
        for kind in TYPES:
            a = errors(kind, pack_doppler(ours, kind, values), values)
            b = errors(kind, pack_ggml(theirs, kind, values), values)
            # Matrices of unlike scale count alike: errors are relative to the matrix.
            power = (values.astype(np.float64) ** 2).sum()
            weight = (np.abs(values).astype(np.float64) ** 3).sum()
            total[kind] += [a[0] / power, b[0] / power, a[1] / weight, b[1] / weight]
            ratio = a[0] / b[0] if b[0] > 0 else 1.0
            worst[kind] = max(worst[kind], (ratio, label))
    good = True
    for kind, (a, b, aw, bw) in total.items():
        print(f"| {name} | {count} | {kind.name} | {a / count:.3e} | {b / count:.3e} | {a / b:.4f} | "
              f"{worst[kind][0]:.4f} ({worst[kind][1]}) | {aw / bw:.4f} |", flush=True)
        good &= a / b <= LIMIT
    return good


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        theirs, ours = build_ggml(pathlib.Path(sys.argv[1]), folder), build_doppler(folder)
        print("| matrices | number | type | NMSE | NMSE of ggml | ratio | worst matrix | weighted ratio |")
        print("|---|---|---|---|---|---|---|---|")
        good = compare("synthetic", synthetic_matrices(), ours, theirs)
        for path in sys.argv[2:]:
            good &= compare(os.path.basename(path), model_matrices(path), ours, theirs)
    sys.exit(0 if good else 1)


main()
