#!/usr/bin/env python3
"""Writes every .wgsl file under a folder into one C++ source: a table of (path below the folder, text).

Usage: embed_wgsl.py FOLDER OUTPUT.cc
"""
import pathlib
import sys


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = [
        "// Written by tools/embed_wgsl.py; do not edit.",
        '#include "kernels/common/wgsl_files.h"',
        "",
        "namespace doppler::kernels {",
        "",
        "const std::vector<WgslFile>& wgsl_files() {",
        "  static const std::vector<WgslFile> files = {",
    ]
    for path in sorted(folder.rglob("*.wgsl")):
        text = path.read_text(encoding="utf-8")
        if ')wgsl"' in text:
            sys.exit(f"embed_wgsl.py: {path} contains the raw string's end")
        lines.append(f'      {{"{path.relative_to(folder).as_posix()}", R"wgsl({text})wgsl"}},')
    lines += ["  };", "  return files;", "}", "", "}  // namespace doppler::kernels", ""]
    content = "\n".join(lines)
    # An unchanged file keeps its time, so that nothing is compiled again.
    if not output.exists() or output.read_text(encoding="utf-8") != content:
        output.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
