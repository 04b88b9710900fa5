#include "heddle/ir/cases.h"

#include <algorithm>
#include <cstring>

namespace heddle {

StepShape StepExample::shape() const {
  i32 longest = 0;
  for (const Sequence& s : sequences) longest = std::max(longest, s.start + s.rows);
  return {.rows = rows(),
          .sequences = i32(sequences.size()),
          .wanted = wanted(),
          .pages_per_sequence = longest / page_size + 1,
          .page_size = page_size,
          .vocab = vocab};
}

i32 StepExample::rows() const {
  i32 sum = 0;
  for (const Sequence& s : sequences) sum += s.rows;
  return sum;
}

i32 StepExample::pages() const {
  return shape().pages_per_sequence * i32(sequences.size()) + 2;
}

StepHost& StepExample::fill_host(std::byte* bytes) const {
  std::memset(bytes, 0, size_t(StepHost::bytes(shape())));
  StepHost& host = *new (bytes) StepHost();
  host.shape = shape();
  host.rows = rows(), host.sequences = i32(sequences.size()), host.wanted = wanted();
  i32 row = 0;
  for (i32 s = 0; s < host.sequences; ++s) {
    StepSequence& sequence = *new (host.sequence(s)) StepSequence();
    sequence.row_begin = row;
    sequence.row_count = sequences[size_t(s)].rows;
    sequence.slot = slots() - 1 - s;
    for (i32 r = 0; r < sequence.row_count; ++r) host.row_sequence()[row++] = s;
    host.wanted_rows()[s] = row - 1;
    for (i32 p = 0; p < host.shape.pages_per_sequence; ++p)
      host.pages(s)[p] = pages() - 1 - (p * host.sequences + s);
  }
  return host;
}

StepDevice& StepExample::fill_state(std::byte* bytes) const {
  std::memset(bytes, 0, size_t(StepDevice::bytes(shape())));
  StepDevice& device = *new (bytes) StepDevice();
  device.shape = shape();
  i32 row = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    device.start()[s] = sequences[s].start;
    for (i32 r = 0; r < sequences[s].rows; ++r, ++row) {
      device.token()[row] = 7 * row % vocab;
      device.position()[row] = sequences[s].start + r;
    }
  }
  return device;
}

}  // namespace heddle
