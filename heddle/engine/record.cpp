#include "heddle/engine/record.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "heddle/base/error.h"

namespace heddle {

StepRecord::StepRecord(const StepShape& shape)
    : shape_(shape), host_(size_t(StepHost::bytes(shape))), device_(size_t(StepDevice::bytes(shape))) {
  (new (host_.data()) StepHost())->shape = shape;
  (new (device_.data()) StepDevice())->shape = shape;
  for (i32 s = 0; s < shape.sequences; ++s) new (host().sequence(s)) StepSequence();
}

void StepRecord::write(std::span<const RecordEntry> entries, u32 num_pages, const AttentionCut& reach) {
  StepHost& host = this->host();
  StepDevice& device = this->device();
  host.rows = host.wanted = 0;
  host.sequences = i32(entries.size());
  device.steps = 0;
  i64 rows = 0, wanted = 0;
  for (const RecordEntry& entry : entries) rows += i64(entry.tokens.size()), wanted += entry.wanted;
  require(rows <= shape_.rows && wanted <= shape_.wanted && i64(entries.size()) <= shape_.sequences,
          "[step] {} rows, {} sequences, {} wanted rows; this program holds {}, {}, {}", rows, entries.size(),
          wanted, shape_.rows, shape_.sequences, shape_.wanted);
  for (i32 s = 0; s < host.sequences; ++s) {
    const RecordEntry& entry = entries[size_t(s)];
    StepSequence& sequence = *host.sequence(s) = entry.sampling;
    sequence.row_begin = host.rows;
    sequence.row_count = i32(entry.tokens.size());
    device.start()[s] = entry.start;
    device.sampled()[s] = -1;
    device.draws()[s] = entry.draws;
    std::copy(entry.seen.begin(), entry.seen.end(), device.seen(s));
    require(i64(entry.pages.size()) <= shape_.pages_per_sequence,
            "[step] sequence {} has {} pages; at most {}", s, entry.pages.size(), shape_.pages_per_sequence);
    std::fill_n(host.pages(s), shape_.pages_per_sequence, -1);
    std::copy(entry.pages.begin(), entry.pages.end(), host.pages(s));
    for (i32 i = 0; i < sequence.row_count; ++i) {
      host.row_sequence()[host.rows] = s;
      device.token()[host.rows] = entry.tokens[size_t(i)];
      device.position()[host.rows] = entry.start + i;
      if (i >= sequence.row_count - entry.wanted) host.wanted_rows()[host.wanted++] = host.rows;
      ++host.rows;
    }
  }
  validate_record(host, device, num_pages, reach);
}

void validate_record(const StepHost& host, const StepDevice& device, u32 num_pages,
                     const AttentionCut& reach) {
  const StepShape& shape = host.shape;
  require(host.magic == kStepMagic && host.version == kStepVersion,
          "[step] magic {:#x} version {}; must be {:#x} and {}", host.magic, host.version, kStepMagic,
          kStepVersion);
  require(host.rows >= 1 && host.rows <= shape.rows, "[step] {} rows; must be 1 to {}", host.rows,
          shape.rows);
  require(host.wanted >= 0 && host.wanted <= shape.wanted, "[step] {} wanted rows; at most {}", host.wanted,
          shape.wanted);
  for (i32 r = 0; r < host.rows; ++r)
    require(device.token()[r] >= 0 && device.token()[r] < shape.vocab,
            "[step] token {} in row {}; must be 0 to {}", device.token()[r], r, shape.vocab - 1);
  std::map<i32, i32> writer, reader;  // page -> sequence
  for (i32 s = 0; s < host.sequences; ++s) {
    const i32 start = device.start()[s], end = start + host.sequence(s)->row_count;
    require(start >= 0 && end <= shape.max_positions(),
            "[step] sequence {} would reach position {}; its pages hold {}", s, end, shape.max_positions());
    for (i32 p = 0; p * shape.page_size < end; ++p) {
      const i32 page = host.pages(s)[p];
      if (page == -1 && (p + 1) * shape.page_size <= first_read(reach, start)) continue;
      require(page >= 0 && u32(page) < num_pages, "[step] page {} of sequence {} is {}; must be 0 to {}", p,
              s, page, num_pages - 1);
      const bool writes = (p + 1) * shape.page_size > start;
      const auto [found, fresh] = (writes ? writer : reader).try_emplace(page, s);
      require(fresh || !writes, "[step] page {} is written by sequences {} and {}", page, found->second, s);
    }
  }
  for (const auto& [page, s] : writer) {
    const auto found = reader.find(page);
    const i32 other = found == reader.end() ? s : found->second;
    require(other == s, "[step] page {} is written by sequence {} and read by {}", page, s, other);
  }
}

}  // namespace heddle
