// Subcommands whose work is done by the Python package: single ops next to torch, their cases, and profilers of them.
#pragma once

#include <string>

namespace heddle {

// Replaces this process by `python3 -m heddle.bench`, `heddle.check` or `heddle.profile` where the arguments ask for them:
// `heddle bench --suite ...`, `heddle check OP ...`, `heddle profile trace|ncu|sanitizer ...`. $HEDDLE_PYTHON names the
// interpreter. The ops are registered. Returns "" where they do not, and why where the interpreter does not start.
std::string hand_to_python(int argc, char** argv);

}  // namespace heddle
