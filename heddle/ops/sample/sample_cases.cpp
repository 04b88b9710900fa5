#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/sample/sample.h"

namespace heddle {
namespace {

// Every sequence of a case draws with options of its own.
StepSequence options_of(i32 s, u64 seed) {
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
  return all[size_t(s) % std::size(all)];
}

struct Example {
  i32 vocab;
  u64 seed;
  double spread;  // scores lie in [-spread, spread]
  bool ties;      // few different scores, some of them minus infinity
  int edge = 0;   // 1 or -1: see at_edges
};

// Two values, at ends of digits of 1/128, as a search by digits takes them (sample.sm80.cuh). At temperature 1.3 the upper half
// of the tokens has 0.6 of all weight, but by the middles of digits it has less (1); or it has less, but not by these (-1).
double at_edges(int edge, size_t token, size_t vocab) {
  constexpr double kDigit = 1.0 / 128, kBeside = 1e-5, kTemperature = 1.3;
  if (token < vocab / 2) return -kTemperature * (52 * kDigit - edge * kBeside);
  const bool is_best = edge > 0 || token + 1 == vocab;
  return is_best ? 0 : -kTemperature * (kDigit - kBeside);
}

void prepare(const StepExample& step, const Example& example, std::byte* bytes, Values& values) {
  auto& a = as<Sample>(bytes);
  StepHost& host = step.fill_host(values.bytes(a.step.buffer));
  StepDevice& device = step.fill_state(values.bytes(a.state.buffer));
  for (i32 s = 0; s < host.sequences; ++s) {
    const i32 begin = host.sequence(s)->row_begin, count = host.sequence(s)->row_count;
    *host.sequence(s) = options_of(s, example.seed);
    host.sequence(s)->row_begin = begin, host.sequence(s)->row_count = count;
    device.draws()[s] = u32(11 * s);
    for (i32 w = 0; w < device.shape.seen_words(); ++w) device.seen(s)[w] = 0x5a17c3e9u * u32(s + w + 1);
  }
  auto logits = values.read(a.logits);
  for (double& v : logits) v = example.ties ? std::round(3 * v) : v * example.spread;
  for (size_t i = 0; i < logits.size() && example.ties; i += 5) logits[i] = -INFINITY;
  const auto vocab = size_t(example.vocab);
  for (size_t i = 0; i < logits.size() && example.edge != 0; ++i)
    logits[i] = at_edges(example.edge, i % vocab, vocab);
  values.write(a.logits, logits);
}

}  // namespace

std::vector<Case> sample_cases() {
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
                                 {20000, 9, 1, true},
                                 {1000, 10, 1, false, 1},
                                 {1000, 11, 1, false, -1}}) {
    StepExample sized = step;
    sized.vocab = example.vocab;
    Sample args{.step = sized.host(),
                .logits = input(DType::kF32, {sized.wanted(), example.vocab}),
                .state = sized.state()};
    Case one = make_case(args, 0);  // the same tokens, or not
    one.prepare = [sized, example](std::byte* bytes, Values& values) {
      prepare(sized, example, bytes, values);
    };
    cases.push_back(one);
  }
  return cases;
}

}  // namespace heddle
