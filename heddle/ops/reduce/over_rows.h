// The cut that a whole kernel makes of x [G, M, D] whose M rows it reduces (over_rows.cuh). Host and device
// compute it from the same numbers. It follows from M and D alone, so that the order of a sum does not depend
// on G.
#pragma once

#include "heddle/base/integer.h"

namespace heddle {

// Numbers of one call that are constants of its kernel.
struct RowsForm {
  i32 threads;      // a CTA has
  i32 vector;       // neighbouring elements that a thread takes at once, a word: 8 or 1
  bool lines;       // rows lie end to end, and threads go along a line of M * D elements; else down columns
  bool split;       // several CTAs may have parts of the same outputs
  i32 most_groups;  // rows that a CTA may take at once
  i32 cluster = 1;  // columns: CTAs that share outputs and join them in one launch
  i32 of_thread = 32;  // rows that it takes before a CTA takes more of them at once

  static constexpr i32 kMostGroups = 8;

  // Where a matrix is alone, many CTAs that have few columns each are faster.
  constexpr RowsForm of_few_rows() const {
    RowsForm form = *this;
    form.most_groups = threads / 8, form.of_thread = 4;
    return form;
  }
};

// Where the words of x lie. The order of a sum does not depend on it.
enum RowsGaps : int {
  kNoGaps,    // as the form says
  kWordGaps,  // each in a row, at multiples of 16 bytes
  kAnyGaps    // anywhere
};

struct RowsCut {
  i32 team;    // lines: threads that share a line. columns: neighbouring words of a CTA
  i32 groups;  // lines: those of a CTA. columns: rows that a CTA takes at once
  i32 parts;   // CTAs that share outputs; what they have is added by another launch
  i64 each;    // words of a line, or rows, that one of them takes
};

namespace over_rows {

constexpr i32 kLongPart = 32;     // words of a thread that make a CTA worth its while
constexpr i32 kMostParts = 1024;  // a line has
constexpr i32 kLeastTeam = 8;     // neighbouring words, 128 bytes of 16-bit elements
constexpr i32 kManyCtas = 1024;   // fill a GPU evenly; a quarter of them is not worth another launch
constexpr i32 kLargeCta = 1024;   // threads of a CTA that has a multiprocessor to itself
constexpr i32 kProcessors = 132;  // for such CTAs

constexpr i64 least(i64 a, i64 b) {
  return a < b ? a : b;
}
constexpr i64 clamped(i64 a, i64 low, i64 high) {
  return a < low ? low : least(a, high);
}
// The words after which a line is again at the same column.
constexpr i32 period(i32 columns, i32 vector) {
  i32 common = vector;
  while (columns % common != 0) common /= 2;
  return columns / common;
}

}  // namespace over_rows

// Neighbouring words of a CTA of a cluster. Large CTAs have so many that one wave of them is enough.
constexpr i32 cluster_team(i32 words, i32 threads) {
  using namespace over_rows;
  i32 team = kLeastTeam;
  while (threads == kLargeCta && team < 4 * kLeastTeam && 2 * ceil_div(words, team) > kProcessors) team *= 2;
  return team;
}

// Lines: period() is at most the threads of a CTA, so that each thread has the same columns in all of its words.
constexpr RowsCut rows_cut(i32 rows, i32 columns, const RowsForm& form) {
  using namespace over_rows;
  RowsCut cut{0, 0, 1, rows};
  if (form.lines) {
    const i32 unit = period(columns, form.vector);
    const i64 words = floor_div(i64(rows) * columns, form.vector);
    cut.team = unit * i32(clamped(ceil_div(words, 8 * unit), 1, form.threads / unit));
    if (cut.team == 1 && words > 1) cut.team = 2;  // neighbours share the 32 bytes that memory gives
    cut.groups = form.threads / cut.team;
    cut.each = words;
    if (!form.split || words <= 2ll * kLongPart * form.threads) return cut;
    cut.parts = i32(least(kMostParts, ceil_div(words, i64(kLongPart) * cut.team)));
    cut.each = ceil_div(ceil_div(words, cut.parts), cut.team) * cut.team;
    cut.parts = i32(ceil_div(words, cut.each));
    return cut;
  }
  if (form.cluster > 1) {
    cut.team = cluster_team(columns / form.vector, form.threads);
    cut.groups = form.threads / cut.team, cut.parts = form.cluster;
    cut.each = ceil_div(ceil_div(rows, cut.parts), cut.groups) * cut.groups;
    return cut;
  }
  for (cut.groups = 1; cut.groups < form.most_groups && rows >= form.of_thread * cut.groups;) cut.groups *= 2;
  cut.team = form.threads / cut.groups;
  if (!form.split) return cut;
  // Fewer words next to each other are better than another launch.
  const i64 blocks = ceil_div(columns / form.vector, cut.team);
  i32 team = cut.team;
  while (team > kLeastTeam && 4 * ceil_div(columns / form.vector, team) < kManyCtas) team /= 2;
  if (4 * ceil_div(columns / form.vector, team) >= kManyCtas && rows >= 32 * (form.threads / team)) {
    cut.team = team, cut.groups = form.threads / team;
    return cut;
  }
  cut.parts =
      i32(clamped(ceil_div(kManyCtas, blocks), 1, clamped(rows / (kLongPart * cut.groups), 1, kMostParts)));
  cut.each = ceil_div(ceil_div(rows, cut.parts), cut.groups) * cut.groups;
  cut.parts = i32(ceil_div(rows, cut.each));
  return cut;
}

// The cut of lines [M, D] that lie end to end where a CTA brings many to its shared memory (short_lines.cuh).
struct ShortCut {
  i32 lines;  // a CTA has
  i32 units;  // words of outputs that a line has: of single elements, or of eight neighbours of D
  i32 terms;  // words that are added for each; where D is 1, eight neighbours of M are one
  i32 team;   // threads that do so, a power of two
};

// A CTA has so many bytes of lines. Those of six CTAs of a multiprocessor are enough to have under way.
constexpr i32 kShortBytes = 16 << 10;

constexpr ShortCut short_cut(i32 rows, i32 columns, i32 vector, i32 element_bytes) {
  const bool in_rows = columns == 1 && vector > 1;
  ShortCut cut{kShortBytes / (rows * columns * element_bytes), in_rows ? 1 : columns / vector,
               in_rows ? rows / vector : rows, 1};
  // Neighbours that read words of 16 bytes next to each other read them from banks of their own.
  const i32 most = in_rows ? 8 : 32, least = in_rows ? 1 : 8;
  while (cut.team < most && cut.terms >= 2 * cut.team * least) cut.team *= 2;
  return cut;
}

// CTAs of the launch.
constexpr i64 rows_grid(i32 groups, i32 columns, const RowsForm& form, const RowsCut& cut) {
  if (form.lines) return ceil_div(groups, cut.groups) * cut.parts;
  return ceil_div(i64(groups) * (columns / form.vector), cut.team) * cut.parts;
}

// The sum of a cut's parts: f32 [G, parts, D]. Words are few, so that a CTA takes as many rows of them as it
// can.
constexpr RowsForm parts_form(i32 columns, i32 threads) {
  return {.threads = threads, .vector = 1, .lines = columns < 8, .split = false, .most_groups = threads / 8};
}

}  // namespace heddle
