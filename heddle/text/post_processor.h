// The `post_processor` of tokenizer.json: the tokens that it puts around a text.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heddle/base/json_view.h"

namespace heddle {

constexpr int32_t kTextPiece = -1;  // stands for the text

// The ids around kTextPiece, which may come several times. `is_token` says whether an id exists. Throws Error with
// the key that is wrong.
std::vector<int32_t> read_post_processor(const JsonView& json,
                                         const std::function<bool(int64_t id)>& is_token);

}  // namespace heddle
