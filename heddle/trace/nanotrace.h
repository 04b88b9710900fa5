// The .nanotrace file, version 1: a header ("nanotrace", 0, version, compressed or not), then, as one zlib stream or
// plain, little-endian and without gaps:
//   name, grid, cluster, counts (formats, blocks, tracks; events of all tracks), then the formats, the blocks, and each
//   track with its events.
// A format says how many parameters its track or event has, and how a viewer labels it. Texts have 16 bits of length
// before them. Viewers stop after the last track; what stands there (`rest`) is for those who know it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

struct Nanotrace {
  struct Format {
    std::string label, tooltip;
    u8 params = 0;
  };
  struct Block {
    u32 id = 0, cluster = 0;
    u16 unit = 0;  // multiprocessor
    u16 format = 0;
  };
  struct Event {
    u32 begin = 0, duration = 0;  // ns since the run began
    u16 format = 0;
    size_t params = 0;  // index of its first in Track::params
  };
  struct Track {
    u32 block = 0;  // index
    u16 format = 0;
    u32 lane = 0;
    std::vector<u32> own;     // parameters of the track
    std::vector<u32> params;  // of its events, one after the other
    std::vector<Event> events;
  };

  std::string name;
  std::array<u32, 3> grid = {}, cluster = {};
  std::vector<Format> formats;
  std::vector<Block> blocks;
  std::vector<Track> tracks;
  std::string rest;
};

std::string serialise_nanotrace(const Nanotrace& trace, bool compressed = true);
// Throws Error(kIo): bytes that are no .nanotrace, or kUnsupported: of another version.
Nanotrace parse_nanotrace(std::string_view bytes, const std::string& where);

}  // namespace heddle
