// Subcommands whose work is done by the Python package: single ops next to torch, their cases, and profilers of them.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// Replaces this process by `python3 -m heddle.bench`, `heddle.check`, `heddle.profile`, `heddle.tune` or `heddle.layout` where
// the arguments ask for them: `heddle bench --suite ...`, `heddle check OP ...`, `heddle profile trace|ncu|nsys|sanitizer ...`,
// and each of them for an op of one's own, `my_file.py:MyOp`. $HEDDLE_PYTHON names the interpreter. The ops are registered. Returns "" where they do not, and why where the interpreter does not start.
std::string hand_to_python(int argc, char** argv);

// Replaces this process by `python3 -m module arguments`; returns why it did not.
std::string become_python(const std::string& command, const std::string& module,
                          const std::vector<std::string>& arguments);

}  // namespace heddle
