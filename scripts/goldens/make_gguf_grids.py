"""Writes heddle/model/hf/gguf_grids.cpp: the rows of codes that GGUF's types IQ1 to IQ3 number."""

from pathlib import Path

import numpy
from gguf import quants

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")
HEAD = """\
// The rows of codes that GGUF's types IQ1 to IQ3 number, 16 bits each: eight codes of 2 bits, or four of
// 4 bits, the first in the lowest bits. Written by scripts/goldens/make_gguf_grids.py from gguf-py's tables.
#include "heddle/model/hf/gguf_grids.h"

namespace heddle {
"""


def main():
    text = HEAD
    for name in NAMES:
        hexes = getattr(quants, name).grid_hex
        rows = numpy.frombuffer(bytes.fromhex(hexes.decode()), "<u2")
        constant = "k" + "".join(part.capitalize() for part in name.split("_"))
        text += f"\nconst uint16_t {constant}[] = {{\n"
        for begin in range(0, len(rows), 13):
            text += "    " + ", ".join(f"0x{row:04x}" for row in rows[begin : begin + 13]) + ",\n"
        text += "};\n"
    (ROOT / "heddle/model/hf/gguf_grids.cpp").write_text(text + "\n}  // namespace heddle\n")


if __name__ == "__main__":
    main()
