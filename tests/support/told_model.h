// A checkpoint that writes what it is told, whatever it reads: its next token depends on the position alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

// Positions that it has.
inline constexpr i32 kToldPositions = 64;

// Writes a GPT-2 of `vocab` tokens into a folder that exists. `told`: the token after each position; token 0 after others.
void write_told_model(const std::string& folder, i32 vocab, i32 eos, const std::map<i32, i32>& told);

// A tokenizer of these words, which it finds anywhere in a text. `special` ones are left out of an answer. Other text is
// token 0. The id of a word is its place, from 1 on.
struct ToldWord {
  std::string text;
  bool special = false;
};
void write_told_tokenizer(const std::string& folder, const std::vector<ToldWord>& words);

}  // namespace heddle
