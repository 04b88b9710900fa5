// The classes of steps by their rows. A program is made for each class and serves every step that fits it; what else
// depends on the rows of a step reads its bounds here. Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

struct RowClass {
  i32 rows = 0;            // most rows of a step
  i32 attention_rows = 0;  // rows of attention's row block
  i32 most_splits = 0;  // parts that the KV range of a row block is cut in, where the target allows as many
};

constexpr RowClass kRowClasses[] = {
    {.rows = 1, .attention_rows = 1, .most_splits = 1 << 20},
    {.rows = 8, .attention_rows = 4, .most_splits = 4},
    {.rows = 64, .attention_rows = 16, .most_splits = 1},
    {.rows = 512, .attention_rows = 64, .most_splits = 1},
    {.rows = 2048, .attention_rows = 64, .most_splits = 1},
};

// A tile of a GPU with no more rows reads its weights as they stream in.
constexpr i32 kFewStepRows = kRowClasses[1].rows;
// From this many rows on, a backend may run programs kernel by kernel (ExecutorSpec::many_rows).
constexpr i32 kManyStepRows = kRowClasses[2].rows;
// As many as threads take at once. Logits of this many rows take a quarter of a gigabyte.
constexpr i32 kPromptStepRows = kRowClasses[3].rows;
constexpr i32 kMostStepRows = kRowClasses[4].rows;

}  // namespace heddle
