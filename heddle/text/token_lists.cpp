#include "heddle/text/token_lists.h"

namespace heddle {

std::vector<int32_t> read_token_list(const JsonView& value) {
  std::vector<int32_t> tokens;
  value.for_each_item([&](const JsonView& token) { tokens.push_back(int32_t(token.as_int(0, INT32_MAX))); });
  if (tokens.empty()) value.fail(ErrorCode::kIo, "at least one token id is expected");
  return tokens;
}

std::vector<std::vector<int32_t>> read_token_lists(const JsonView& value) {
  std::vector<std::vector<int32_t>> lists;
  value.for_each_item([&](const JsonView& list) { lists.push_back(read_token_list(list)); });
  return lists;
}

std::vector<SequenceBias> read_sequence_bias(const JsonView& value) {
  std::vector<SequenceBias> biases;
  value.for_each_item([&](const JsonView& pair) {
    SequenceBias bias;
    size_t at = 0;
    pair.for_each_item([&](const JsonView& part) {
      if (at == 0) bias.tokens = read_token_list(part);
      if (at == 1) bias.bias = float(part.as_number());
      ++at;
    });
    if (at != 2)
      pair.fail(ErrorCode::kIo, "a list of token ids and a number are expected, as [[1, 2], -2.5]");
    // The later of two for one sequence counts, as in transformers.
    std::erase_if(biases, [&](const SequenceBias& other) { return other.tokens == bias.tokens; });
    biases.push_back(std::move(bias));
  });
  return biases;
}

}  // namespace heddle
