#include "heddle/trace/nanotrace.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// Version 1, byte by byte, written by hand.
const std::string kPlain =
    std::string("nanotrace\0\x01\x00", 12) +                                     // magic, version, plain
    std::string("\x02\0ab", 4) +                                                 // name
    std::string("\x02\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24) +  // grid, cluster
    std::string("\x02\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0", 20) +  // formats, blocks, tracks, events
    std::string("\x01\0x\0\0\0", 6) +                                      // format 0: no parameters
    std::string("\x01\0y\x03\0tip\x02", 9) +                               // format 1: two of them
    std::string("\x05\0\0\0\x06\0\0\0\x07\0\0\0", 12) +                    // block 5, cluster 6, unit 7
    std::string("\0\0\0\0\0\0\x09\0\0\0\x02\0\0\0", 14) +                  // track: block 0, format 0, lane 9
    std::string("\x64\0\0\0\x0a\0\0\0\0\0", 10) +                          // at 100 for 10 ns
    std::string("\xc8\0\0\0\x14\0\0\0\x01\0\x0b\0\0\0\x0c\0\0\0", 18) + "rest";

TEST(Nanotrace, ReadsTheLayoutOfVersion1) {
  const Nanotrace trace = parse_nanotrace(kPlain, "here");
  EXPECT_EQ(trace.name, "ab");
  EXPECT_EQ(trace.grid, (std::array<u32, 3>{2, 1, 1}));
  ASSERT_EQ(trace.formats.size(), 2u);
  EXPECT_EQ(trace.formats[1].tooltip, "tip");
  EXPECT_EQ(trace.formats[1].params, 2);
  EXPECT_EQ(trace.blocks[0].id, 5u);
  EXPECT_EQ(trace.blocks[0].cluster, 6u);
  EXPECT_EQ(trace.blocks[0].unit, 7u);
  EXPECT_EQ(trace.tracks[0].lane, 9u);
  ASSERT_EQ(trace.tracks[0].events.size(), 2u);
  const Nanotrace::Event& event = trace.tracks[0].events[1];
  EXPECT_EQ(event.begin, 200u);
  EXPECT_EQ(event.duration, 20u);
  EXPECT_EQ(trace.tracks[0].params[event.params + 1], 12u);
  EXPECT_EQ(trace.rest, "rest");
}

TEST(Nanotrace, WritesTheSameBytes) {
  const Nanotrace trace = parse_nanotrace(kPlain, "here");
  EXPECT_EQ(serialise_nanotrace(trace, false), kPlain);
  const std::string packed = serialise_nanotrace(trace);
  EXPECT_EQ(packed[11], 1) << "compressed";
  EXPECT_EQ(packed.substr(12, 1), "\x78") << "as a zlib stream";
  EXPECT_EQ(serialise_nanotrace(parse_nanotrace(packed, "here"), false), kPlain);
}

TEST(Nanotrace, RefusesWhatIsCut) {
  const std::string packed = serialise_nanotrace(parse_nanotrace(kPlain, "here"));
  for (size_t size = 0; size + 4 < kPlain.size(); ++size)
    EXPECT_THROW(parse_nanotrace(std::string_view(kPlain).substr(0, size), "here"), Error) << size;
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_THROW(parse_nanotrace(std::string_view(packed).substr(0, size), "here"), Error) << size;
}

TEST(Nanotrace, RefusesWhatDoesNotFit) {
  const auto refused = [](size_t at, char value, const std::string& word) {
    std::string bytes = kPlain;
    bytes[at] = value;
    try {
      parse_nanotrace(bytes, "here");
      FAIL() << "byte " << at;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused(0, 'x', "another kind of file");
  refused(10, 2, "version 2; this heddle reads version 1");
  refused(11, 2, "neither compressed nor plain");
  refused(40 + 3, '\x7f', "counts more things");                     // formats
  refused(12 + 28 + 12, 3, "another number of events");              // events
  refused(12 + 28 + 20 + 6 + 9 + 10, 2, "names a format");           // the block's format
  refused(12 + 28 + 20 + 6 + 9 + 12, 1, "a track of a block");       // the track's block
  refused(12 + 28 + 20 + 6 + 9 + 12 + 14 + 8, 2, "names a format");  // the first event's format
}

TEST(Nanotrace, IsNotWrittenWithoutAnEventsParameters) {
  Nanotrace trace;
  trace.formats = {{"track", "", 0}, {"event", "", 2}};
  trace.blocks = {{}};
  trace.tracks = {{.params = {1}, .events = {{0, 1, 1, 0}}}};
  EXPECT_THROW(serialise_nanotrace(trace), Error);
  trace.tracks[0].params.push_back(2);
  EXPECT_NO_THROW(serialise_nanotrace(trace));
  trace.tracks[0].events[0].format = 2;
  EXPECT_THROW(serialise_nanotrace(trace), Error) << "there is no such format";
}

}  // namespace
}  // namespace heddle
