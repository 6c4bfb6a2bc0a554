#!/usr/bin/env python3
"""Writes tests/golden/gguf/: a small file by the gguf package, and what that package reads from the real models.

Needs PyPI gguf and numpy in a virtual environment. Run: tools/make_gguf_golden.py tests/golden MODEL.gguf...

all-types.gguf   every metadata type, every array type, tensors of 1 to 4 dimensions, alignment 64
<MODEL>.txt      metadata and tensor counts, then "name dtype rows columns v0 v1 v2 v3": the last row's last values
"""
import pathlib
import sys

import gguf
import numpy as np
from gguf import GGUFValueType as V

SCALARS = {V.UINT8: 200, V.INT8: -100, V.UINT16: 60000, V.INT16: -30000, V.UINT32: 4000000000, V.INT32: -2000000000,
           V.FLOAT32: 0.15625, V.BOOL: True, V.STRING: "gr\u00fc\u00dfe \u2581", V.UINT64: 2**63 + 5, V.INT64: -2**62,
           V.FLOAT64: 1e300}


def write_all_types(path):
    w = gguf.GGUFWriter(path, "test", endianess=gguf.GGUFEndian.LITTLE)
    w.add_custom_alignment(64)
    for kind, value in SCALARS.items():
        w.add_key_value(f"one.{kind.name}", value, kind)
        other = {V.STRING: "", V.BOOL: False}.get(kind, kind not in (V.FLOAT32, V.FLOAT64) and 1 or 1.0)
        w.add_key_value(f"array.{kind.name}", [value, other, value], V.ARRAY, kind)
    for dims in range(1, 5):
        shape = tuple(range(2, 2 + dims))
        w.add_tensor(f"t{dims}", np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    halves = (np.arange(64, dtype=np.float32) / 8).reshape(2, 32)
    w.add_tensor("half", halves.astype(np.float16))
    w.add_tensor("q8", gguf.quants.quantize(halves, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def describe(model, path):
    r = gguf.GGUFReader(model)
    pairs = sum(not k.startswith("GGUF.") for k in r.fields)
    lines = [f"{pairs} {len(r.tensors)}"]
    for t in r.tensors:
        columns = int(t.shape[0])
        rows = int(t.n_elements) // columns
        last = t.data.reshape(rows, -1)[-1:]
        values = gguf.quants.dequantize(last, t.tensor_type).reshape(-1)[-4:]
        lines.append(f"{t.name} {t.tensor_type.name} {rows} {columns} " + " ".join(float(v).hex() for v in values))
    path.write_text("\n".join(lines) + "\n")


folder = pathlib.Path(sys.argv[1]) / "gguf"
folder.mkdir(parents=True, exist_ok=True)
write_all_types(folder / "all-types.gguf")
for name in sys.argv[2:]:
    describe(name, folder / (pathlib.Path(name).stem + ".txt"))
