#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/attention/attention.h"

namespace heddle::attention {
namespace {

struct Layout {
  StepExample step;
  AttentionCut cut;
};

struct HeadSizes {
  i32 heads, kv_heads, head_dim;
  i32 value_dim = head_dim;
  i32 block_heads = heads / kv_heads;
};

// The change of the scores, and the positions that count.
struct Scores {
  i32 window = 0;
  float softcap = 0;
};

Attention attention_args(const Layout& layout, const HeadSizes& sizes, DType rows, DType pages) {
  const StepExample& step = layout.step;
  const auto of_step = [&](i32 heads, i32 dim) { return input(rows, {step.rows(), heads * dim}); };
  const auto in_pages = [&](i32 dim) {
    return input(pages, {step.pages(), sizes.kv_heads, step.page_size, dim});
  };
  Attention args{.step = step.host(), .state = step.state(), .q = of_step(sizes.heads, sizes.head_dim)};
  args.k = of_step(sizes.kv_heads, sizes.head_dim), args.v = of_step(sizes.kv_heads, sizes.value_dim);
  args.keys = in_pages(sizes.head_dim), args.values = in_pages(sizes.value_dim);
  args.heads = sizes.heads, args.kv_heads = sizes.kv_heads, args.block_heads = sizes.block_heads;
  args.scale = 1 / std::sqrt(float(sizes.head_dim));
  args.block_rows = layout.cut.block_rows, args.max_blocks = layout.cut.max_blocks;
  args.max_splits = layout.cut.max_splits, args.split_unit = layout.cut.split_unit;
  return args;
}

// A matrix unit that has many queries may round their weights, at most 1 each, to its 16-bit operands.
double weights_bound(const Attention& args) {
  const DType type = args.keys.dtype;
  const bool rounds = size_of(type) == 2 && args.q.dtype == type && args.block_rows * args.block_heads > 16;
  return rounds ? 0.5 * rounding_bound(type, 0) : 0;
}

Case attention_case(const StepExample& step, const Attention& args) {
  // Scores are sums over score_dim; the values' sum grows with what stands in a split. A cap rounds scores again.
  const double steps = 8 + 0.25 * args.score_dim() + (args.softcap > 0 ? 4 : 0);
  const DType part = args.part.rank > 0 ? args.part.dtype : DType::kF32;
  Case result = make_case(args, rounding_bound(part, steps) + weights_bound(args));
  result.prepare = [step](std::byte* bytes, Values& values) {
    auto& a = as<Attention>(bytes);
    step.fill_host(values.bytes(a.step.buffer));
    step.fill_state(values.bytes(a.state.buffer));
  };
  return result;
}

// Tiles of many queries: full ones and tails, more than a pass takes, sequences that end in the middle of one; parts and
// windows that begin in the middle of what is on chip at once.
void add_many_queries(std::vector<Case>& cases) {
  const Layout prompt{{{{0, 150}}}, {64, 4, 1, 64}};
  const Layout several{{{{37, 70}, {0, 33}, {130, 1}, {90, 5}, {203, 40}}, 4}, {32, 9, 1, 8}};
  const Layout parts{{{{70, 40}, {5, 3}, {300, 18}}, 8}, {16, 7, 3, 8}};
  const Layout paged{{{{37, 70}, {0, 33}, {130, 1}, {96, 140}, {201, 40}}, 32}, {32, 14, 1, 64}};
  const HeadSizes all_sizes[] = {{8, 2, 64}, {8, 1, 64}, {2, 2, 128}, {5, 1, 128}, {3, 1, 96}, {2, 1, 256}};
  size_t turn = 0;
  for (const Layout& layout : {prompt, several, parts, paged})
    for (const HeadSizes& sizes : all_sizes)
      for (const Scores& scores : {Scores{}, {7, 0.7f}, {100}}) {
        const DType type = turn % 2 == 0 ? DType::kBf16 : DType::kF16;
        Attention args = attention_args(layout, sizes, type, type);
        args.window = scores.window, args.softcap = scores.softcap;
        if (turn % 3 == 0)
          args.part = input(type, {layout.step.rows(), args.heads, args.max_splits, args.value_dim()});
        cases.push_back(attention_case(layout.step, args));
        ++turn;
      }
}

// Splits of which a tile makes all, and that it joins.
void add_joined(std::vector<Case>& cases) {
  const Layout parts{{{{70, 40}, {5, 3}, {300, 18}}, 8}, {16, 7, 25, 16}};
  size_t turn = 0;
  for (const HeadSizes& sizes : {HeadSizes{6, 2, 24}, {2, 2, 64}})
    for (const Scores& scores : {Scores{}, {33, 0.7f}})
      for (DType type : {DType::kF32, DType::kBf16}) {
        Attention args = attention_args(parts, sizes, type, type);
        args.window = scores.window, args.softcap = scores.softcap, args.joins = 1;
        if (turn++ % 3 == 0) args.part = input(type, {parts.step.rows(), args.heads, 1, args.value_dim()});
        cases.push_back(attention_case(parts.step, args));
      }
}

// A bias of each head and position, in sizes that GPUs have passes of their own for too.
void add_biases(std::vector<Case>& cases) {
  const Layout decode{{{{.start = 70, .rows = 1}}, 4}, {1, 1, 4, 16}};
  const Layout mixed{{{{5, 11}, {66, 1}, {0, 3}}, 4}, {4, 7, 5, 8}};
  const Layout prompt{{{{0, 150}}}, {64, 4, 1, 64}};
  for (const Layout& layout : {decode, mixed, prompt})
    for (const HeadSizes& sizes : {HeadSizes{6, 2, 24}, {4, 4, 64}})
      for (DType type : {DType::kF32, DType::kBf16}) {
        Attention args = attention_args(layout, sizes, type, type);
        args.bias = input(DType::kF32, {sizes.heads, 256});
        cases.push_back(attention_case(layout.step, args));
        args.window = 9, args.softcap = 0.7f;
        cases.push_back(attention_case(layout.step, args));
      }
}

}  // namespace

std::vector<Case> cases() {
  // Pages of 4 and 16 positions; one split, several, and dead ones for the shorter sequences; dead row blocks.
  const Layout first{{{{0, 1}}}, {1, 1, 1, 16}};
  const Layout decode{{{{.start = 70, .rows = 1}}, 4}, {1, 1, 4, 16}};
  const Layout batch{{{{40, 1}, {3, 1}, {130, 1}}}, {1, 5, 3, 16}};
  const Layout prefill{{{{0, 37}}, 4}, {8, 6, 2, 8}};
  const Layout mixed{{{{5, 11}, {66, 1}, {0, 3}}, 4}, {4, 7, 5, 8}};
  std::vector<Case> cases;
  for (const Layout& layout : {first, decode, batch, prefill, mixed})
    for (const HeadSizes& sizes : {HeadSizes{1, 1, 1}, {6, 2, 24}, {8, 1, 33}, {2, 2, 64}, {10, 2, 128}})
      for (auto [rows, pages] : {std::pair{DType::kF32, DType::kF32},
                                 {DType::kF32, DType::kBf16},
                                 {DType::kBf16, DType::kBf16},
                                 {DType::kF16, DType::kF16}})
        cases.push_back(attention_case(layout.step, attention_args(layout, sizes, rows, pages)));
  // Windows of one position, inside a part, across parts and pages, and wider than all there is.
  const Layout far{{{{900, 2}, {333, 1}, {0, 2}}, 4}, {4, 4, 4, 8}};
  const HeadSizes all_sizes[] = {{6, 2, 24}, {2, 2, 64}, {10, 2, 128}};
  size_t turn = 0;
  for (const Layout& layout : {decode, batch, prefill, mixed, far}) {
    for (const Scores& scores : {Scores{1}, {9}, {33, 0.7f}, {250}, {1000, 5.0f}, {0, 1.5f}}) {
      for (DType type : {DType::kF32, DType::kBf16}) {
        Attention args = attention_args(layout, all_sizes[turn % 3], type, type);
        args.window = scores.window, args.softcap = scores.softcap;
        args.part = input(type, {layout.step.rows(), args.heads, args.max_splits, args.value_dim()});
        cases.push_back(attention_case(layout.step, args));
      }
      ++turn;
    }
    ++turn;  // other pairs for the next layout
  }
  // Latent attention: one head of keys and values, for some of the query heads at a time; narrow and wide chunks.
  for (const Layout& layout : {first, decode, batch, prefill, mixed})
    for (const HeadSizes& sizes : {HeadSizes{6, 1, 2, 5, 3}, {4, 1, 10, 64, 2}, {3, 1, 24, 250, 1}})
      for (auto [rows, pages] : {std::pair{DType::kF32, DType::kF32},
                                 {DType::kF32, DType::kBf16},
                                 {DType::kBf16, DType::kBf16},
                                 {DType::kF16, DType::kF16}}) {
        Attention args = attention_args(layout, sizes, rows, pages);
        args.latent = input(rows, {layout.step.rows(), sizes.heads * sizes.value_dim});
        args.scale = 1 / std::sqrt(float(args.score_dim()));
        if (args.score_dim() > 256) args.chunk = 16;
        cases.push_back(attention_case(layout.step, args));
      }
  add_many_queries(cases);
  add_biases(cases);
  add_joined(cases);
  return cases;
}

}  // namespace heddle::attention
