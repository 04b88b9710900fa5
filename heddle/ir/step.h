// The step record: one step is a ragged batch of rows (tokens) of several sequences. The host part is
// constant during a launch; the device part is advanced by the program between steps. Both are flat
// memory with the arrays behind the header, so that the same bytes serve every executor.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr u32 kStepMagic = 0x50455453u;  // "STEP"
constexpr u32 kStepVersion = 1;

// What a program is built for: capacities, never exceeded by a step.
struct StepShape {
  i32 rows = 1;                // T: rows of a step
  i32 sequences = 1;           // S
  i32 wanted = 1;              // rows whose logits are wanted
  i32 pages_per_sequence = 1;  // entries of a page table
  i32 page_size = 64;          // positions of a page
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
  i32 row_begin = 0;  // its rows are [row_begin, row_begin + row_count), in order of position
  i32 row_count = 0;
  float temperature = 0;         // 0: greedy
  float top_p = 1;               // (0, 1]
  float min_p = 0;               // [0, 1)
  float repetition_penalty = 1;  // > 0
  i32 top_k = 0;                 // 0: all
  i32 reserved = 0;
  u64 seed = 0;

  // Whether it draws, and not from all tokens.
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
  i32 reserved = 0;   // StepSequence begins at a multiple of 8 bytes

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

// Where the arrays behind a StepDevice begin, 32-bit words from its end: token i32[T] | position i32[T] | start i32[S] |
// sampled i32[S] | draws u32[S] | seen u32[S][words] | history i32[S][kHistory]: the token of draw d at d % kHistory.
// start: positions of the sequence already in the pages before this step.
struct StepArrays {
  static constexpr i32 kHistory = 64;  // tokens that a sequence remembers for the host

  i64 position, start, sampled, draws, seen, history, end;
  i32 words;  // of seen, a sequence's

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
  static constexpr i32 kStepsWord = i32(sizeof(StepShape)) / 4;  // where steps stands in the record

  StepShape shape;
  i32 steps = 0;  // steps done since the host wrote the record
  i32 reserved = 0;

  static i64 bytes(const StepShape& s) { return i64(sizeof(StepDevice)) + 4 * StepArrays(s).end; }
  // Where sampled() begins, bytes from the record's beginning.
  static i64 sampled_offset(const StepShape& s) {
    return i64(sizeof(StepDevice)) + 4 * StepArrays(s).sampled;
  }
  i32* token() { return reinterpret_cast<i32*>(this + 1); }
  i32* position() { return token() + StepArrays(shape).position; }
  i32* start() { return token() + StepArrays(shape).start; }
  // With the shape that the host's part has too, which may lie nearer than this one's.
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

// How attention is cut into tiles. Constants of the program; borders depend on a sequence's length only,
// so that neither the batch nor the number of workers changes a sum. With a window, the range that is cut begins
// at the last border of split_unit before all that the block's rows see: what lies before it is not read.
struct AttentionCut {
  i32 block_rows = 1;    // rows of one sequence that a tile handles together
  i32 max_blocks = 1;    // row blocks of a step
  i32 max_splits = 1;    // parts a KV range is cut in at most
  i32 split_unit = 256;  // positions: a part is a multiple of this
  i32 window = 0;        // positions that a row sees, itself and those before it; 0: all

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("block_rows", s.block_rows), v("max_blocks", s.max_blocks);
    v("max_splits", s.max_splits), v("split_unit", s.split_unit), v("window", s.window);
  }
};

// One row block of a step: which rows, and how far back they look.
struct AttentionBlock {
  i32 sequence = -1;  // -1: dead
  i32 row_begin = 0, row_end = 0;
  i32 start = 0;   // positions of the sequence in the pages, before this step
  i32 first = 0;   // positions before this one are seen by none of its rows; a multiple of split_unit
  i32 length = 0;  // start + rows of the sequence in this step up to row_end
  i32 splits = 0, split_size = 0;
};

// Length of a part for a KV range of `length` positions.
inline i32 split_size(const AttentionCut& cut, i32 length) {
  i32 units = (length + cut.split_unit - 1) / cut.split_unit;
  i32 each = (units + cut.max_splits - 1) / cut.max_splits;
  return (each > 0 ? each : 1) * cut.split_unit;
}

// No tile reads what the pages hold before this position, for rows from `position` on.
inline i32 first_read(const AttentionCut& cut, i32 position) {
  const i32 hidden = cut.window > 0 ? position + 1 - cut.window : 0;
  return hidden > 0 ? hidden / cut.split_unit * cut.split_unit : 0;
}

inline void cut_block(AttentionBlock& block, const AttentionCut& cut, const StepSequence& sequence, i32 start,
                      i32 first) {
  i32 last = first + cut.block_rows < sequence.row_count ? first + cut.block_rows : sequence.row_count;
  block.row_begin = sequence.row_begin + first;
  block.row_end = sequence.row_begin + last;
  block.start = start;
  block.length = start + last;
  block.first = first_read(cut, start + first);
  block.split_size = split_size(cut, block.length - block.first);
  block.splits = (block.length - block.first + block.split_size - 1) / block.split_size;
}

// The attention plan: block index -> rows and KV range. A pure function of the lengths.
inline AttentionBlock attention_block(const StepHost& host, const StepDevice& device, const AttentionCut& cut,
                                      i32 index) {
  AttentionBlock block;
  for (i32 s = 0; s < host.sequences; ++s) {
    const StepSequence& sequence = *host.sequence(s);
    i32 blocks = (sequence.row_count + cut.block_rows - 1) / cut.block_rows;
    if (index < blocks) {
      block.sequence = s;
      cut_block(block, cut, sequence, device.start(host.shape)[s], index * cut.block_rows);
      return block;
    }
    index -= blocks;
  }
  return block;
}

// The block that a live row belongs to.
inline AttentionBlock attention_block_of_row(const StepHost& host, const StepDevice& device,
                                             const AttentionCut& cut, i32 row) {
  AttentionBlock block;
  block.sequence = host.row_sequence()[row];
  const StepSequence& sequence = *host.sequence(block.sequence);
  i32 first = (row - sequence.row_begin) / cut.block_rows * cut.block_rows;
  cut_block(block, cut, sequence, device.start(host.shape)[block.sequence], first);
  return block;
}

}  // namespace heddle
