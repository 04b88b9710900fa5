// The .nanotrace file, version 1: a header ("nanotrace", 0, version, compressed or not), and then, as one
// zlib stream or plain, little-endian and without gaps: name, grid, cluster, counts (formats, blocks, tracks;
// events of all tracks), then the formats, the blocks, and each track with its events. A format says how many
// parameters its track or event has, and how a viewer labels it. A text has its 16-bit length first. Viewers
// stop after the last track; programs that know what follows (`rest`) may read it.
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
    size_t params = 0;  // index of its first parameter in Track::params
  };
  struct Track {
    u32 block = 0;  // index
    u16 format = 0;
    u32 lane = 0;
    std::vector<u32> own;     // parameters of the track
    std::vector<u32> params;  // parameters of its events, one after the other
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
// Throws Error(kIo) when the bytes are not a .nanotrace, kUnsupported when they are another version.
Nanotrace parse_nanotrace(std::string_view bytes, const std::string& where);

}  // namespace heddle
