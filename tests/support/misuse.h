// What people do wrong, done to the program: it ends with an exit code that `heddle --help` names and a message
// that says where, what the value was and what would be right; it never ends by a signal and leaves nothing behind.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command.h"

namespace heddle {

constexpr int kFailed = 1, kWrongArguments = 2;
const std::string kGoldens = HEDDLE_SOURCE_DIR "/tests/goldens/";

// Each runs in a folder of its own with `tiny` (Llama, 3 layers, hidden 40, vocabulary 131), `shards` and `story`.
// In arguments @ is that folder.
struct Misuse {
  const char* name;
  std::vector<std::string> args;
  int code;
  std::vector<std::string> words;  // of stderr
  void (*damage)(const std::string& folder) = nullptr;
  Command how = {};  // stdin, stdout, limits
};

void PrintTo(const Misuse& misuse, std::ostream* out);
std::string name_of_misuse(const testing::TestParamInfo<Misuse>& info);

// Its test is named when a table is instantiated with it.
class Misuses : public testing::TestWithParam<Misuse> {
 public:
  void run() const;
};

using Strings = std::vector<std::string>;

// `heddle generate` with the model `story` and more arguments.
Strings generate(Strings more);

}  // namespace heddle
