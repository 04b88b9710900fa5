#include <algorithm>
#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/sample/sample.h"
#include "heddle/ops/sample/sample_reference.h"

namespace heddle::sample {
namespace {

// Every sequence of a case draws with options of its own. by_blocks: options whose thresholds lie at ends of blocks and slices
// (score_slices.h) where scores descend with the token.
StepSequence options_of(i32 s, u64 seed, bool by_blocks) {
  StepSequence o;
  o.seed = ((seed << 40) + u64(s)) * 0x9E3779B97F4A7C15u;
  const StepSequence all[] = {
      o,
      {.temperature = 1, .seed = o.seed},
      {.temperature = 0.7f, .top_k = 5, .seed = o.seed},
      {.temperature = 1.3f, .top_p = 0.6f, .seed = o.seed},
      {.temperature = 0.9f, .min_p = 0.1f, .seed = o.seed},
      {.temperature = 1,
       .top_p = 0.8f,
       .min_p = 0.05f,
       .repetition_penalty = 1.3f,
       .top_k = 12,
       .seed = o.seed},
      {.repetition_penalty = 1.7f, .seed = o.seed},
      {.temperature = 2, .top_p = 0.01f, .top_k = 1, .seed = o.seed},
  };
  const StepSequence blocks[] = {
      {.temperature = 1, .top_k = 32, .seed = o.seed},
      {.temperature = 0.8f, .top_p = 0.95f, .seed = o.seed},
      {.temperature = 2, .top_k = 1024, .seed = o.seed},
      {.temperature = 3, .top_p = 0.5f, .top_k = 1025, .seed = o.seed},
      {.temperature = 0.5f, .top_p = 0.999f, .repetition_penalty = 1.2f, .seed = o.seed},
      {.temperature = 1, .top_k = 2016, .seed = o.seed},
      {.temperature = 1e-6f, .top_p = 0.9f, .seed = o.seed},
      {.temperature = 50, .top_p = 0.3f, .min_p = 0.5f, .seed = o.seed},
  };
  return by_blocks ? blocks[size_t(s) % std::size(blocks)] : all[size_t(s) % std::size(all)];
}

constexpr i32 kLarge = 100000;  // tokens, of which two sequences are enough

struct Example {
  i32 vocab;
  u64 seed;
  double spread;  // scores lie in [-spread, spread]
  bool ties;      // few different scores, some of them minus infinity
  int edge = 0;   // 1 or -1: see at_edges
  enum Form { kRandom, kEqual, kFalling, kOneSlice, kNone, kTwo, kBroken } form = kRandom;
  bool by_blocks = false;  // see options_of
  bool edited = false;     // see edit
  int masked = 0;          // see mask
};

// kEqual: all scores are equal. kFalling: each is lower than the one before. kOneSlice: one slice has nearly all of the weight.
// kNone: a row has one score, the first row, which is greedy, none and no token. kTwo: two values, so that more blocks of slices may
// hold a threshold than a search in registers takes. kBroken: rows with a NaN, with plus infinity, with nothing but minus infinity,
// and sound ones.
double formed(Example::Form form, size_t row, size_t token, double value) {
  switch (form) {
    case Example::kEqual:
      return 2.5;
    case Example::kFalling:
      return 3 - 1e-3 * double(token);
    case Example::kOneSlice:
      return token / ScoreSlices::kSize == row % 3 ? value : value - 40;
    case Example::kNone:
      return row > 0 && token == 77 ? value : -INFINITY;
    case Example::kTwo:
      return token % ScoreSlices::kSize < 51 ? 0 : -40;
    case Example::kBroken:
      return row % 4 == 3        ? value
             : row % 4 == 2      ? -INFINITY
             : token != 40 + row ? value
             : row % 4 == 1      ? INFINITY
                                 : NAN;
    default:
      return value;
  }
}

// Two values that are close to multiples of 1/128. At temperature 1.3 the upper half of the tokens has a little more than 0.6 of
// all weight (1), or a little less (-1).
double at_edges(int edge, size_t token, size_t vocab) {
  constexpr double kDigit = 1.0 / 128, kBeside = 1e-5, kTemperature = 1.3;
  if (token < vocab / 2) return -kTemperature * (52 * kDigit - edge * kBeside);
  const bool is_best = edge > 0 || token + 1 == vocab;
  return is_best ? 0 : -kTemperature * (kDigit - kBeside);
}

// Edits the scores of two of three sequences; those of the third would have no choice if its slot were read.
void edit(StepHost& host, const StepDevice& device, size_t vocab, std::vector<double>& edits) {
  for (i32 s = 0; s < host.sequences; ++s) {
    StepSequence& options = *host.sequence(s);
    const size_t bias = size_t(options.slot) * ScoreEdits::kPlanes * vocab;
    if (s % 3 == 2) std::fill_n(&edits[bias], vocab, -INFINITY);
    if (s % 3 == 2) continue;
    options.edited = ScoreEdits::kByPlanes, options.presence_penalty = s % 2 == 0 ? 0.75f : -0.5f;
    options.frequency_penalty = s % 4 < 2 ? 0.375f : -0.25f;
    const double draws = double(device.draws()[s]);
    for (size_t token = 0; token < vocab; ++token) {
      double &added = edits[bias + token], &count = edits[bias + ScoreEdits::kCount * vocab + token];
      added = token % 11 == 3 ? -INFINITY : token % 7 == 0 ? double(token % 5) - 2 : 0;
      count = token % 13 == 2 ? -draws - double(token % 2) : token % 3 == 0 ? double(token % 4) : 0;
    }
  }
}

// Masks the scores of two of three sequences: every second token stays, in words that differ. The third has a mask without a bit, which
// nobody reads. 2: the first sequence's mask has none either, so that it has no choice, and the second one's has one.
void mask(StepHost& host, i32 vocab, int how, std::byte* masks) {
  for (i32 s = 0; s < host.sequences; ++s) {
    StepSequence& options = *host.sequence(s);
    const i32 bytes = ScoreEdits::mask_bytes(vocab);
    std::byte* const mine = masks + i64(options.slot) * bytes;
    std::fill_n(mine, bytes, std::byte{0});
    if (s % 3 != 2) options.edited |= ScoreEdits::kByMask;
    if (how == 2 && s == 1) mine[(vocab - 1) / 8] = std::byte(1 << (vocab - 1) % 8);
    if (s % 3 == 2 || (how == 2 && s < 2)) continue;
    for (i32 i = 0; i < bytes; ++i)
      mine[i] = std::byte((i + s) % 5 == 0 ? 0 : (i + s) % 2 == 0 ? 0x5a : 0xc3);
  }
}

// Sets the parts as sample_parts makes them; those that a sequence does not ask for stay as they are.
void prepare_parts(const Sample& a, const StepHost& host, const StepDevice& device, Values& values) {
  const auto logits = values.read(a.logits), edits = values.read(a.edits);  // as they are stored
  auto best = values.read(a.best), sorted = values.read(a.sorted), blocks = values.read(a.blocks);
  const auto vocab = size_t(a.logits.last()), slices = size_t(a.best.size[1]);
  for (i32 s = 0; s < host.sequences; ++s) {
    const StepSequence& options = *host.sequence(s);
    const auto scores = edited_scores(std::span(logits).subspan(size_t(s) * vocab, vocab), host, device, s,
                                      edits, values.bytes(a.masks.buffer));
    for (size_t slice = 0; slice < slices; ++slice) {
      const SliceParts parts = slice_parts(scores, i32(slice), double(options.temperature));
      const size_t at = size_t(s) * slices + slice;
      std::ranges::copy(parts.best, best.begin() + long(at * parts.best.size()));
      if (!options.drops(a.logits.last())) continue;
      std::ranges::copy(parts.sorted, sorted.begin() + long(at * parts.sorted.size()));
      std::ranges::copy(parts.blocks, blocks.begin() + long(at * parts.blocks.size()));
    }
  }
  values.write(a.best, best), values.write(a.sorted, sorted), values.write(a.blocks, blocks);
}

void prepare(const StepExample& step, const Example& example, std::byte* bytes, Values& values) {
  auto& a = as<Sample>(bytes);
  StepHost& host = step.fill_host(values.bytes(a.step.buffer));
  StepDevice& device = step.fill_state(values.bytes(a.state.buffer));
  for (i32 s = 0; s < host.sequences; ++s) {
    const i32 begin = host.sequence(s)->row_begin, count = host.sequence(s)->row_count;
    const i32 slot = host.sequence(s)->slot;
    *host.sequence(s) = options_of(s, example.seed, example.by_blocks);
    host.sequence(s)->row_begin = begin, host.sequence(s)->row_count = count, host.sequence(s)->slot = slot;
    device.draws()[s] = u32(11 * s);
    for (i32 w = 0; w < device.shape.seen_words(); ++w) device.seen(s)[w] = 0x5a17c3e9u * u32(s + w + 1);
  }
  auto logits = values.read(a.logits);
  for (double& v : logits) v = example.ties ? std::round(3 * v) : v * example.spread;
  for (size_t i = 0; i < logits.size() && example.ties; i += 5) logits[i] = -INFINITY;
  const auto vocab = size_t(example.vocab);
  for (size_t i = 0; i < logits.size() && example.edge != 0; ++i)
    logits[i] = at_edges(example.edge, i % vocab, vocab);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = formed(example.form, i / vocab, i % vocab, logits[i]);
  values.write(a.logits, logits);
  auto edits = values.read(a.edits);
  std::ranges::fill(edits, 0.0);
  if (example.edited) edit(host, device, vocab, edits);
  values.write(a.edits, edits);
  if (example.masked > 0) mask(host, example.vocab, example.masked, values.bytes(a.masks.buffer));
  if (a.best.exists()) prepare_parts(a, host, device, values);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  // Decode rows go on by themselves; the last row of a prompt only gives a token.
  const StepExample step{{{4, 1}, {0, 5}, {9, 1}, {17, 1}, {3, 7}, {2, 1}, {8, 1}, {6, 1}}};
  for (const Example& example : {Example{64, 1, 5, false},
                                 {1000, 2, 8, false},
                                 {1000, 3, 1e-3, false},
                                 {333, 4, 20, false},
                                 {97, 5, 1, true},
                                 {1, 6, 1, false},
                                 {20000, 7, 1e-3, false},
                                 {20000, 8, 6, false},
                                 {20000, 33, 1, true},
                                 {1000, 10, 1, false, 1},
                                 {1000, 11, 1, false, -1},
                                 {5001, 12, 4, false, 0, Example::kRandom, true},
                                 {3072, 13, 1, false, 0, Example::kEqual, true},
                                 {3072, 14, 1, false, 0, Example::kFalling, true},
                                 {20000, 15, 1, false, 0, Example::kEqual},
                                 {4003, 16, 3, false, 0, Example::kOneSlice, true},
                                 {4003, 17, 3, false, 0, Example::kOneSlice},
                                 {2050, 18, 3, false, 0, Example::kNone},
                                 {97, 29, 3, false, 0, Example::kBroken},
                                 {2050, 30, 3, false, 0, Example::kBroken},
                                 {2050, 31, 3, false, 0, Example::kBroken, true},
                                 {20000, 19, 5, false, 0, Example::kRandom, true},
                                 {20000, 28, 1, false, 0, Example::kTwo, true},
                                 {97, 61, 5, false, 0, Example::kRandom, false, true},
                                 {1000, 62, 8, false, 0, Example::kRandom, false, true},
                                 {5001, 63, 4, false, 0, Example::kRandom, true, true},
                                 {97, 64, 5, false, 0, Example::kRandom, false, false, 1},
                                 {1000, 65, 8, false, 0, Example::kRandom, false, true, 1},
                                 {2050, 66, 3, false, 0, Example::kBroken, false, false, 1},
                                 {5001, 67, 4, false, 0, Example::kRandom, true, false, 2},
                                 {128257, 71, 0.3, false, 0, Example::kRandom, true},
                                 {150001, 22, 4, false, 0, Example::kRandom, true},
                                 {270000, 23, 4, false, 0, Example::kRandom, true},
                                 {270000, 24, 1, false, 0, Example::kTwo, true}})
    for (const bool from_parts : {false, true}) {
      StepExample sized = step;
      sized.vocab = example.vocab;
      if (example.vocab > kLarge) sized.sequences.resize(2);
      Sample args{.step = sized.host(),
                  .logits = input(DType::kF32, {sized.wanted(), example.vocab}),
                  .state = sized.state(),
                  .edits = input(DType::kF32, {sized.slots(), ScoreEdits::kPlanes, example.vocab}),
                  .masks = input(DType::kU8, {sized.slots(), ScoreEdits::mask_bytes(example.vocab)})};
      if (from_parts) {
        const i32 rows = sized.wanted(), slices = ScoreSlices::number(example.vocab);
        args.best = input(DType::kF32, {rows, slices, ScoreSlices::kParts});
        args.sorted = input(DType::kF32, {rows, slices, ScoreSlices::kSize});
        args.blocks = input(DType::kF32, {rows, slices, ScoreSlices::kPlanes, ScoreSlices::kBlocks});
      }
      Case one = make_case(args, 0);  // tokens must be equal
      one.prepare = [sized, example](std::byte* bytes, Values& values) {
        prepare(sized, example, bytes, values);
      };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::sample
