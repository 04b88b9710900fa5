#include "heddle/backend/cuda/tagged.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

constexpr u32 kStageUnit = 128;
constexpr u32 kBareWord = 8;               // bytes of bare elements that are loaded at once with their tags
constexpr u32 kMostStageBytes = 40 << 10;  // beside the scratch of bodies

u32 round_up(i64 bytes, u32 unit = kStageUnit) {
  return u32((bytes + unit - 1) / unit * unit);
}

// A call's tensor in a tagged buffer, with where its address lies in the call's arguments.
struct FoundTagged {
  const Tensor* tensor;
  bool writes;
  u32 argument;
};

class MakeTables {
 public:
  explicit MakeTables(const Program& program) : program_(program), words_(program.buffers.size()) {
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      if (!program.buffers[b].info.tagged) continue;
      words_[b] = u32(made_.word_bytes);
      made_.word_bytes += round_up(2 * round_up(program.buffers[b].info.bytes, kBareWord));
    }
  }

  TaggedTables run() {
    for (const Call& call : program_.calls) nodes_.push_back(program_.node_of(call));
    for (size_t c = 0; c < nodes_.size(); ++c) add_call(c);
    std::vector<NodeRule> rules(nodes_.begin(), nodes_.end());
    u32 largest = 0;
    for (const auto& stream : program_.workers)
      for (const Instruction& instruction : stream) {
        made_.parts.push_back(instruction.opcode < kNopOpcode ? part_of(rules[instruction.call], instruction)
                                                              : TaggedPart{});
        const TaggedPart& part = made_.parts.back();
        largest = std::max(largest, part.begin % 16 + part.bytes);
      }
    share_out(round_up(largest));
    return std::move(made_);
  }

 private:
  const Buffer& buffer(u32 index) const { return program_.buffers[index].info; }

  void add_call(size_t c) {
    std::vector<FoundTagged> found;
    u32 begin = 0;  // of a part's arguments in the call's
    for (const Part& part : nodes_[c].parts) {
      for (const Field& field : part.op->fields) {
        if (!field.is_tensor()) continue;
        const Tensor& value = field.tensor(part.args.data());
        if (value.exists() && buffer(value.buffer).tagged)
          found.push_back({&value, field.writes(), begin + u32(field.offset + offsetof(Tensor, data))});
      }
      begin += u32(part.args.size() + 15) / 16 * 16;
    }
    std::ranges::stable_partition(found, [](const FoundTagged& f) { return f.writes; });
    TaggedCall call{.first = u32(made_.tensors.size()), .count = u32(found.size())};
    made_.calls.push_back(call);
    for (const auto& [tensor, writes, argument] : found) {
      made_.tensors.push_back({.words = words_[tensor->buffer],
                               .bytes = round_up(buffer(tensor->buffer).bytes, kBareWord),
                               .argument = argument,
                               .offset = u32(tensor->offset),
                               .element = u16(size_of(tensor->dtype)),
                               .writes = u16(writes)});
      made_.buffers.push_back(tensor->buffer);
      const Buffer& info = buffer(tensor->buffer);
      require_carried(size_of(tensor->dtype) == 2 || size_of(tensor->dtype) == 4, c, info,
                      "its elements are no words with a tag");
    }
    if (call.count == 0) return;
    const auto writes = std::count_if(found.begin(), found.end(), [](auto& f) { return f.writes; });
    const Buffer& info = buffer(made_.buffers.back());
    require_carried(call.count <= kMostTagged && writes <= 1, c, info, "the call has too many like it");
    require_carried(begin <= kQueueArgsBytes, c, info, "the call's arguments stay in memory");
  }

  // What a tile makes of tagged buffers.
  TaggedPart part_of(const NodeRule& rule, const Instruction& instruction) {
    const u32 call = instruction.call;
    regions_.clear();
    rule.append({{instruction.tile[0], instruction.tile[1], instruction.tile[2], instruction.tile[3]}},
                regions_);
    TaggedPart part;
    for (const Region& region : regions_) {
      const Buffer& info = buffer(region.buffer);
      if (!info.tagged) continue;
      const bool whole = region.bytes() == info.bytes, run = region.bytes() == region.end() - region.offset;
      if (region.access == Access::kRead)
        require_carried(whole, call, info, "a tile reads a part of it");
      else
        require_carried(run && part.bytes == 0, call, info, "a tile makes several parts of it");
      if (region.access == Access::kRead) continue;
      const bool last = region.end() == info.bytes;
      part = {u32(region.offset),
              (last ? round_up(info.bytes, kBareWord) : u32(region.end())) - u32(region.offset)};
    }
    for (int i = 0; i < kMaxWaits; ++i)
      if (instruction.waits[i].counter != kNoCounter && instruction.wait_kind(i) == EdgeKind::kTagged)
        require_read(call, program_.counters[instruction.waits[i].counter].buffer);
    return part;
  }

  // A tagged wait is for what the tile reads: for all of it, and so for all who make it.
  void require_read(u32 call, u32 waited) const {
    const TaggedCall& of = made_.calls[call];
    for (u32 t = of.first; t < of.first + of.count; ++t)
      if (made_.buffers[t] == waited && !made_.tensors[t].writes) return;
    require_carried(false, call, buffer(waited), "the call waits for its words and does not read them");
  }

  void require_carried(bool holds, size_t call, const Buffer& info, const char* why) const {
    if (!holds)
      fail(ErrorCode::kUnsupported, "[megakernel] {} is tagged and call {} cannot have it so: {}", info.name,
           program_.node_names[program_.calls[call].node], why);
  }

  // What tiles make lies at the begin of the stage, in every call: some warps still write it to memory when others are
  // at the next tile's inputs.
  void share_out(u32 made_bytes) {
    for (const TaggedCall& call : made_.calls) {
      u32 bytes = made_bytes;
      for (u32 t = call.first; t < call.first + call.count; ++t) {
        TaggedTensor& tensor = made_.tensors[t];
        if (tensor.writes) continue;
        tensor.place = bytes;
        bytes += round_up(tensor.bytes);
      }
      if (bytes > kMostStageBytes)
        fail(ErrorCode::kUnsupported,
             "[megakernel] tagged tensors of a call take {} bytes on chip; at most {}", bytes,
             kMostStageBytes);
      made_.stage_bytes.push_back(bytes);
    }
  }

  const Program& program_;
  std::vector<u32> words_;  // by buffer
  std::vector<Node> nodes_;
  std::vector<Region> regions_;
  TaggedTables made_;
};

}  // namespace

bool has_tagged(const Program& program) {
  return std::ranges::any_of(program.buffers, [](const ProgramBuffer& b) { return b.info.tagged; });
}

TaggedTables tagged_tables(const Program& program) {
  const size_t calls = program.calls.size();
  if (!has_tagged(program))
    return {.calls = std::vector<TaggedCall>(calls), .stage_bytes = std::vector<u32>(calls)};
  return MakeTables(program).run();
}

}  // namespace heddle::cuda
