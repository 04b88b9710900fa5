// This test reads the file with a decoder of its own; scripts/check_trace.py reads one with Perfetto's
// schema.
#include "heddle/trace/perfetto.h"

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "heddle/trace/test_timelines.h"

namespace heddle {
namespace {

struct WireField {
  u64 number = 0;
  std::string_view bytes;
};
using Message = std::multimap<u32, WireField>;

u64 read_varint(std::string_view& bytes) {
  u64 value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const u8 byte = u8(bytes[0]);
    bytes.remove_prefix(1);
    value |= u64(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

Message decode(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const u64 key = read_varint(bytes);
    WireField field;
    if ((key & 7) == 0) {
      field.number = read_varint(bytes);
    } else if ((key & 7) == 1) {
      std::memcpy(&field.number, bytes.data(), 8);
      bytes.remove_prefix(8);
    } else {
      EXPECT_EQ(key & 7, 2u);
      const size_t size = read_varint(bytes);
      field.bytes = bytes.substr(0, size);
      bytes.remove_prefix(size);
    }
    message.emplace(u32(key >> 3), field);
  }
  return message;
}

u64 number(const Message& message, u32 field) {
  const auto found = message.find(field);
  return found == message.end() ? 0 : found->second.number;
}

TEST(Perfetto, HasASliceForEachWaitWorkAndPublication) {
  Timeline timeline = two_workers();
  timeline.calls[1].body = "use_kernel.sm90 (rows=64)";
  const std::string file = serialise_perfetto(timeline);
  std::map<u64, std::string> names;
  std::map<u64, std::vector<std::string>> slices;  // by track: name, begin, end
  std::map<u64, int> open, flows;
  size_t tracks = 0;
  for (const auto& [field, packet_bytes] : decode(file)) {
    ASSERT_EQ(field, 1u);
    const Message packet = decode(packet_bytes.bytes);
    EXPECT_EQ(number(packet, 10), 1u) << "every packet belongs to the sequence";
    tracks += packet.count(60);
    if (packet.count(12)) {
      for (const auto& [kind, entry] : decode(packet.find(12)->second.bytes)) {
        if (kind != 2) continue;
        const Message text = decode(entry.bytes);
        names[number(text, 1)] = std::string(text.find(2)->second.bytes);
      }
    }
    if (!packet.count(11)) continue;
    const Message event = decode(packet.find(11)->second.bytes);
    const u64 track = number(event, 11), time = number(packet, 8);
    if (number(event, 9) == 1) {
      slices[track].push_back(names.at(number(event, 10)) + " " + std::to_string(time));
      ++open[track];
    } else {
      slices[track].back() += " " + std::to_string(time);
      --open[track];
    }
    if (event.count(47)) ++flows[number(event, 47)];
    if (event.count(48)) --flows[number(event, 48)];
  }
  EXPECT_NE(file.find("use_kernel.sm90 (rows=64)"), std::string::npos) << "the body of a call";
  EXPECT_EQ(tracks, 3u) << "the process and two lanes";
  EXPECT_EQ(slices[2],
            (std::vector<std::string>{"make 0 700", "publish 700 800", "wait 800 2100", "make 2100 2200"}));
  EXPECT_EQ(slices[3],
            (std::vector<std::string>{"wait 100 900", "use more 900 1900", "publish 1900 2000",
                                      "wait 2000 2300", "use more 2300 2900", "publish 2900 3000"}));
  EXPECT_EQ(flows.size(), 3u);
  for (const auto& [flow, count] : flows) EXPECT_EQ(count, 0) << "an arrow has two ends";
  for (const auto& [track, count] : open) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace heddle
