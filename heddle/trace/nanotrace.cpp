#include "heddle/trace/nanotrace.h"

#include <algorithm>

#include <zlib.h>

#include "heddle/base/invariant.h"
#include "heddle/trace/bytes.h"

namespace heddle {
namespace {

constexpr std::string_view kMagic("nanotrace\0", 10);
constexpr u8 kVersion = 1;
constexpr size_t kLeastFormat = 5, kLeastBlock = 12, kLeastTrack = 14, kLeastEvent = 10;  // bytes

std::string compress_bytes(std::string_view bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  const int result =
      compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                bytes.size(), Z_DEFAULT_COMPRESSION);
  HEDDLE_CHECK(result == Z_OK);
  out.resize(size);
  return out;
}

struct Inflater {
  z_stream stream{};
  Inflater() { HEDDLE_CHECK(inflateInit(&stream) == Z_OK); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

// Decompresses in pieces, so that a stream that ends early takes no more memory than it filled.
std::string decompress_bytes(std::string_view bytes, const std::string& where) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string out;
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min<size_t>(bytes.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = uInt(piece);
      bytes.remove_prefix(piece);
    }
    const size_t had = out.size(), room = std::clamp<size_t>(had, 1u << 16, 1u << 30);
    out.resize(had + room);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = uInt(room);
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(had + (room - std::min<size_t>(room, stream.avail_out)));
  }
  if (result != Z_STREAM_END)
    fail(ErrorCode::kIo, "[{}] its zlib stream is {}; the file was cut or changed", where,
         result == Z_BUF_ERROR ? "short" : "broken");
  return out;
}

void check_format(const Nanotrace& trace, u16 format, const ByteReader& reader) {
  if (format >= trace.formats.size()) reader.refuse("names a format that it does not have");
}

void read_events(ByteReader& reader, const Nanotrace& trace, Nanotrace::Track& track) {
  track.events.resize(reader.count<u32>(kLeastEvent));
  for (Nanotrace::Event& event : track.events) {
    event.begin = reader.get<u32>(), event.duration = reader.get<u32>(), event.format = reader.get<u16>();
    check_format(trace, event.format, reader);
    event.params = track.params.size();
    for (u8 i = 0; i < trace.formats[event.format].params; ++i) track.params.push_back(reader.get<u32>());
  }
}

}  // namespace

std::string serialise_nanotrace(const Nanotrace& trace, bool compressed) {
  ByteWriter payload;
  payload.text(trace.name);
  for (const u32 extent : trace.grid) payload.put(extent);
  for (const u32 extent : trace.cluster) payload.put(extent);
  u64 events = 0;
  for (const Nanotrace::Track& track : trace.tracks) events += track.events.size();
  payload.put(u32(trace.formats.size())), payload.put(u32(trace.blocks.size()));
  payload.put(u32(trace.tracks.size())), payload.put(events);
  for (const Nanotrace::Format& format : trace.formats)
    payload.text(format.label), payload.text(format.tooltip), payload.put(format.params);
  for (const Nanotrace::Block& block : trace.blocks)
    payload.put(block.id), payload.put(block.cluster), payload.put(block.unit), payload.put(block.format);
  for (const Nanotrace::Track& track : trace.tracks) {
    payload.put(track.block), payload.put(track.format), payload.put(track.lane);
    for (const u32 value : track.own) payload.put(value);
    payload.put(u32(track.events.size()));
    for (const Nanotrace::Event& event : track.events) {
      require(event.format < trace.formats.size() &&
                  event.params + trace.formats[event.format].params <= track.params.size(),
              "[nanotrace] an event of format {} with parameters from {} on; there are {} formats, and {} "
              "parameters in its track",
              event.format, event.params, trace.formats.size(), track.params.size());
      payload.put(event.begin), payload.put(event.duration), payload.put(event.format);
      for (u8 i = 0; i < trace.formats[event.format].params; ++i) payload.put(track.params[event.params + i]);
    }
  }
  payload.out += trace.rest;
  ByteWriter file;
  file.out = kMagic;
  file.put(kVersion), file.put(u8(compressed));
  return file.out += compressed ? compress_bytes(payload.out) : payload.out;
}

Nanotrace parse_nanotrace(std::string_view bytes, const std::string& where) {
  ByteReader header(bytes, where);
  if (header.left() < kMagic.size() + 2 || header.take(kMagic.size()) != kMagic)
    header.refuse("another kind of file, by its first bytes");
  if (const u8 version = header.get<u8>(); version != kVersion)
    fail(ErrorCode::kUnsupported, "[{}] .nanotrace of version {}; this heddle reads version {}", where,
         version, kVersion);
  const u8 compressed = header.get<u8>();
  if (compressed > 1) header.refuse("neither compressed nor plain");
  std::string inflated;
  if (compressed) inflated = decompress_bytes(header.take(header.left()), where);
  ByteReader reader(compressed ? std::string_view(inflated) : header.take(header.left()), where);
  Nanotrace trace;
  trace.name = reader.text();
  for (u32& extent : trace.grid) extent = reader.get<u32>();
  for (u32& extent : trace.cluster) extent = reader.get<u32>();
  const u32 formats = reader.get<u32>(), blocks = reader.get<u32>(), tracks = reader.get<u32>();
  u64 events = reader.get<u64>();
  if (formats > reader.left() / kLeastFormat || blocks > reader.left() / kLeastBlock ||
      tracks > reader.left() / kLeastTrack)
    reader.refuse("counts more things than it has bytes");
  trace.formats.resize(formats), trace.blocks.resize(blocks), trace.tracks.resize(tracks);
  for (Nanotrace::Format& format : trace.formats)
    format.label = reader.text(), format.tooltip = reader.text(), format.params = reader.get<u8>();
  for (Nanotrace::Block& block : trace.blocks) {
    block.id = reader.get<u32>(), block.cluster = reader.get<u32>();
    block.unit = reader.get<u16>(), block.format = reader.get<u16>();
    check_format(trace, block.format, reader);
  }
  for (Nanotrace::Track& track : trace.tracks) {
    track.block = reader.get<u32>(), track.format = reader.get<u16>(), track.lane = reader.get<u32>();
    if (track.block >= blocks) reader.refuse("a track of a block that it does not have");
    check_format(trace, track.format, reader);
    for (u8 i = 0; i < trace.formats[track.format].params; ++i) track.own.push_back(reader.get<u32>());
    read_events(reader, trace, track);
    events -= track.events.size();
  }
  if (events != 0) reader.refuse("its tracks have another number of events than it says");
  trace.rest = reader.take(reader.left());
  return trace;
}

}  // namespace heddle
