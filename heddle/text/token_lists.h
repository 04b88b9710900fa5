// Lists of tokens in JSON, as transformers writes them in bad_words_ids and sequence_bias, and OpenAI's logit_bias.
#pragma once

#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/text/sampling_params.h"

namespace heddle {

// Each of these throws Error(kIo) that names the value when it has another form.
std::vector<int32_t> read_token_list(const JsonView& value);                // [1, 2]; not empty
std::vector<std::vector<int32_t>> read_token_lists(const JsonView& value);  // [[1, 2], [3]]
TokenBias read_token_bias(const JsonView& value);                           // {"1": -2.5, "3": 100}
std::vector<SequenceBias> read_sequence_bias(const JsonView& value);        // [[[1, 2], -2.5], [[3], 1]]

}  // namespace heddle
