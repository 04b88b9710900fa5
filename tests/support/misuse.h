// Runs the program with mistakes that people make. It must end with an exit code that `heddle --help` names
// and with a message that says where the mistake is, what the value was and what would be right. It must not
// end by a signal or leave files.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command.h"

namespace heddle {

constexpr int kFailed = 1, kWrongArguments = 2;
const std::string kGoldens = HEDDLE_SOURCE_DIR "/tests/goldens/";

// Each case runs in its own folder with `tiny` (Llama, 3 layers, hidden 40, vocabulary 131), `shards` and
// `story`. In arguments @ is that folder.
struct Misuse {
  const char* name;
  std::vector<std::string> args;
  int code;
  std::vector<std::string> words;  // words of stderr
  void (*damage)(const std::string& folder) = nullptr;
  Command how = {};  // stdin, stdout, limits
};

void PrintTo(const Misuse& misuse, std::ostream* out);
std::string name_of_misuse(const testing::TestParamInfo<Misuse>& info);

// A table that instantiates it gives the tests of program/misuse_test.cpp their names.
class Misuses : public testing::TestWithParam<Misuse> {
 public:
  void run() const;
};

using Strings = std::vector<std::string>;

// `heddle generate` with the model `story` and more arguments.
Strings generate(Strings more);

}  // namespace heddle
