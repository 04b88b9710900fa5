#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/sample/sample_parts.h"

namespace heddle::sample_parts {
namespace {

StepSequence options_of(i32 s) {
  const StepSequence all[] = {
      {},
      {.temperature = 1},
      {.temperature = 0.8f, .top_p = 0.95f},
      {.repetition_penalty = 1.7f},
      {.temperature = 1.3f, .repetition_penalty = 1.2f, .top_k = 40},
      {.temperature = 0.5f, .min_p = 0.1f},
  };
  return all[size_t(s) % std::size(all)];
}

enum class Form { kRandom, kTies, kEqual, kSparse, kBroken, kEdited, kMasked };

double formed(Form form, size_t i, double value, i32 vocab) {
  switch (form) {
    case Form::kTies:
      return i % 5 == 0 ? -INFINITY : std::round(3 * value);
    case Form::kEqual:
      return 1;
    case Form::kSparse:  // most slices have none
      return i % size_t(vocab) % 1500 == 3 ? value : -INFINITY;
    case Form::kBroken: {  // the greedy rows: those of sequences 0 and 3
      const size_t row = i / size_t(vocab), token = i % size_t(vocab);
      return token == 70 && row == 0 ? NAN : token == 1030 && row == 3 ? INFINITY : value;
    }
    default:
      return 4 * value;
  }
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [vocab, form] : {std::pair{1, Form::kRandom},
                                    {64, Form::kTies},
                                    {1023, Form::kRandom},
                                    {1024, Form::kEqual},
                                    {1025, Form::kRandom},
                                    {4096, Form::kTies},
                                    {5003, Form::kRandom},
                                    {5000, Form::kSparse},
                                    {1100, Form::kBroken},
                                    {1030, Form::kEdited},
                                    {2100, Form::kMasked}}) {
    // The second sequence's rows are those of a prompt.
    const StepExample step{.sequences = {{4, 1}, {0, 5}, {9, 1}, {17, 1}, {3, 7}, {2, 1}}, .vocab = vocab};
    const SampleParts args{.step = step.host(),
                           .logits = input(DType::kF32, {step.wanted(), vocab}),
                           .state = step.state(),
                           .edits = input(DType::kF32, {step.slots(), ScoreEdits::kPlanes, vocab}),
                           .masks = input(DType::kU8, {step.slots(), ScoreEdits::mask_bytes(vocab)})};
    Case one = make_case(args, rounding_bound(DType::kF32, 64));
    one.prepare = [step, vocab, form](std::byte* bytes, Values& values) {
      auto& a = as<SampleParts>(bytes);
      StepHost& host = step.fill_host(values.bytes(a.step.buffer));
      StepDevice& device = step.fill_state(values.bytes(a.state.buffer));
      for (i32 s = 0; s < host.sequences; ++s) {
        const StepSequence rows = *host.sequence(s);
        *host.sequence(s) = options_of(s);
        host.sequence(s)->row_begin = rows.row_begin, host.sequence(s)->row_count = rows.row_count;
        host.sequence(s)->slot = rows.slot;
        if (form == Form::kEdited && s % 3 != 1)
          host.sequence(s)->edited = ScoreEdits::kByPlanes, host.sequence(s)->presence_penalty = 0.5f,
          host.sequence(s)->frequency_penalty = -0.25f;
        if (form == Form::kMasked && s % 3 != 1) host.sequence(s)->edited |= ScoreEdits::kByMask;
        device.draws()[s] = 3;
        for (i32 w = 0; w < device.shape.seen_words(); ++w) device.seen(s)[w] = 0x5a17c3e9u * u32(s + w + 1);
      }
      auto logits = values.read(a.logits);
      for (size_t i = 0; i < logits.size(); ++i) logits[i] = formed(form, i, logits[i], vocab);
      values.write(a.logits, logits);
      auto edits = values.read(a.edits);  // biases, and counts from -4 to 3
      for (size_t i = 0; i < edits.size(); ++i)
        edits[i] = i / size_t(vocab) % 2 == 0 ? double(i % 7) - 3 : double(i % 8) - 4;
      values.write(a.edits, edits);
    };
    cases.push_back(one);
  }
  return cases;
}

}  // namespace heddle::sample_parts
