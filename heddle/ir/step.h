// The step record. One step is a ragged batch of rows (tokens) of several sequences. The host part is
// constant during a launch; the program itself advances the device part between steps. Both are flat memory
// with arrays after the header, so that the same bytes serve every executor. Host and device include it: no
// standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr u32 kStepMagic = 0x50455453u;  // "STEP"
constexpr u32 kStepVersion = 2;

// The capacities that a program is built for. No step exceeds them.
struct StepShape {
  i32 rows = 1;                // T: rows in a step
  i32 sequences = 1;           // S
  i32 wanted = 1;              // rows that need logits
  i32 pages_per_sequence = 1;  // entries in a page table
  i32 page_size = 64;          // positions in a page
  i32 vocab = 0;               // for the seen-token bits of the repetition penalty

  i32 max_positions() const { return pages_per_sequence * page_size; }
  i32 seen_words() const { return (vocab + 31) / 32; }
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("rows", s.rows), v("sequences", s.sequences), v("wanted", s.wanted);
    v("pages_per_sequence", s.pages_per_sequence), v("page_size", s.page_size), v("vocab", s.vocab);
  }
};

struct StepSequence {
  i32 row_begin = 0;  // the sequence's rows are [row_begin, row_begin + row_count), in order of position
  i32 row_count = 0;
  float temperature = 0;         // 0: greedy
  float top_p = 1;               // (0, 1]
  float min_p = 0;               // [0, 1)
  float repetition_penalty = 1;  // > 0
  i32 top_k = 0;                 // 0: all
  i32 slot = 0;  // its place in memory that is kept for each sequence: of recurrent layers, and score_edits
  float presence_penalty = 0;  // for tokens of the answer
  float frequency_penalty = 0;
  i32 edited = 0;    // 1: its scores depend on what its slot says of them (score_edits.h)
  i32 reserved = 0;  // puts seed at a multiple of 8 bytes
  u64 seed = 0;

  // True if it draws, and from fewer than all tokens.
  bool drops(i32 vocab) const {
    return temperature > 0 && ((top_k > 0 && top_k < vocab) || top_p < 1 || min_p > 0);
  }
};

struct StepHost {
  u32 magic = kStepMagic;
  u32 version = kStepVersion;
  StepShape shape;
  i32 rows = 0;       // live rows
  i32 sequences = 0;  // live sequences
  i32 wanted = 0;     // live entries of wanted()
  i32 reserved = 0;   // puts StepSequence at a multiple of 8 bytes

  // Arrays: StepSequence[S] | row -> sequence i32[T] | wanted rows i32[wanted] | pages i32[S][pages].
  static i64 bytes(const StepShape& s) {
    return i64(sizeof(StepHost)) + i64(sizeof(StepSequence)) * s.sequences +
           4 * (i64(s.rows) + s.wanted + i64(s.sequences) * s.pages_per_sequence);
  }
  StepSequence* sequence(i32 s) { return reinterpret_cast<StepSequence*>(this + 1) + s; }
  i32* row_sequence() { return reinterpret_cast<i32*>(sequence(shape.sequences)); }
  i32* wanted_rows() { return row_sequence() + shape.rows; }
  i32* pages(i32 s) { return wanted_rows() + shape.wanted + i64(s) * shape.pages_per_sequence; }
  const StepSequence* sequence(i32 s) const { return const_cast<StepHost*>(this)->sequence(s); }
  const i32* row_sequence() const { return const_cast<StepHost*>(this)->row_sequence(); }
  const i32* wanted_rows() const { return const_cast<StepHost*>(this)->wanted_rows(); }
  const i32* pages(i32 s) const { return const_cast<StepHost*>(this)->pages(s); }
};

// Offsets of the arrays after a StepDevice, in 32-bit words from its end: token i32[T] | position i32[T] |
// start i32[S] | sampled i32[S] | draws u32[S] | seen u32[S][words] | history i32[S][kHistory]: the token of
// draw d is at d % kHistory. start: positions of the sequence that are in the pages before this step.
struct StepArrays {
  static constexpr i32 kHistory = 64;  // tokens kept for the host, per sequence
  static constexpr i32 kNoToken = -1;  // in place of a token: the scores were no numbers (ops/sample)

  i64 position, start, sampled, draws, seen, history, end;
  i32 words;  // words of `seen`, per sequence

  explicit StepArrays(const StepShape& s) : words(s.seen_words()) {
    position = s.rows, start = position + s.rows, sampled = start + s.sequences;
    draws = sampled + s.sequences, seen = draws + s.sequences;
    history = seen + i64(s.sequences) * words, end = history + i64(s.sequences) * kHistory;
  }
  i64 seen_of(i32 sequence) const { return seen + i64(sequence) * words; }
  i64 history_of(i32 sequence) const { return history + i64(sequence) * kHistory; }
};

struct StepDevice {
  static constexpr i32 kHistory = StepArrays::kHistory;
  static constexpr i32 kStepsWord = i32(sizeof(StepShape)) / 4;  // offset of `steps` in the record, in words

  StepShape shape;
  i32 steps = 0;  // steps done since the host wrote the record
  i32 reserved = 0;

  static i64 bytes(const StepShape& s) { return i64(sizeof(StepDevice)) + 4 * StepArrays(s).end; }
  // Offset of sampled() from the beginning of the record, in bytes.
  static i64 sampled_offset(const StepShape& s) {
    return i64(sizeof(StepDevice)) + 4 * StepArrays(s).sampled;
  }
  i32* token() { return reinterpret_cast<i32*>(this + 1); }
  i32* position() { return token() + StepArrays(shape).position; }
  i32* start() { return token() + StepArrays(shape).start; }
  // Takes the shape from the host's part, which has the same one and may be closer in memory.
  const i32* start(const StepShape& same) const { return token() + StepArrays(same).start; }
  i32* sampled() { return token() + StepArrays(shape).sampled; }
  u32* draws() { return reinterpret_cast<u32*>(token() + StepArrays(shape).draws); }
  u32* seen(i32 s) { return reinterpret_cast<u32*>(token() + StepArrays(shape).seen_of(s)); }
  i32* history(i32 s) { return token() + StepArrays(shape).history_of(s); }
  const i32* token() const { return const_cast<StepDevice*>(this)->token(); }
  const i32* position() const { return const_cast<StepDevice*>(this)->position(); }
  const i32* start() const { return const_cast<StepDevice*>(this)->start(); }
  const i32* sampled() const { return const_cast<StepDevice*>(this)->sampled(); }
  const u32* draws() const { return const_cast<StepDevice*>(this)->draws(); }
  const u32* seen(i32 s) const { return const_cast<StepDevice*>(this)->seen(s); }
  const i32* history(i32 s) const { return const_cast<StepDevice*>(this)->history(s); }
};

}  // namespace heddle
