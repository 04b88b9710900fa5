"""Writes heddle/text/tokenizer_class_table.h: the tokenizer class of each model type in transformers."""

from pathlib import Path

from transformers.models.auto.tokenization_auto import (
    MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS,
    TOKENIZER_MAPPING_NAMES,
)

OUT = Path(__file__).resolve().parents[2] / "heddle/text/tokenizer_class_table.h"
HEAD = """\
// The tokenizer class that transformers registers for each model type.
// Written by scripts/goldens/make_tokenizer_classes.py.
// The formatter would write one entry a line.
// clang-format off
#pragma once

namespace heddle {

struct RegisteredClass {
  const char* model_type;
  const char* name;      // without Fast
  bool over_checkpoint;  // counts even where the checkpoint names another class
};

inline constexpr RegisteredClass kRegisteredClasses[] = {
"""


def main() -> None:
    cells = []
    for model_type, name in sorted(TOKENIZER_MAPPING_NAMES.items()):
        if name:
            over = "true" if model_type in MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS else "false"
            cells.append(f'{{"{model_type}", "{name.removesuffix("Fast")}", {over}}},')
    rows = [" " + " ".join(cells[i : i + 2]) for i in range(0, len(cells), 2)]
    OUT.write_text(HEAD + "\n".join(rows) + "\n};\n\n}  // namespace heddle\n")


if __name__ == "__main__":
    main()
