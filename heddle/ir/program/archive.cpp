#include "heddle/ir/program/archive.h"

#include <xxhash.h>

namespace heddle {
namespace {

constexpr size_t kMagicBytes = 8, kHeaderBytes = 32;

}  // namespace

bool is_of_kind(const FileKind& kind, std::string_view bytes) {
  return bytes.substr(0, kMagicBytes) == kind.magic;
}

std::string frame(const FileKind& kind, std::string_view fields) {
  ArchiveWriter header;
  u32 version = kind.version, reserved = 0;
  u64 size = fields.size(), hash = XXH3_64bits(fields.data(), fields.size());
  header.raw(kind.magic.data(), kMagicBytes);
  field(header, version), field(header, reserved), field(header, size), field(header, hash);
  return header.out.append(fields);
}

std::string_view unframe(const FileKind& kind, std::string_view bytes, const std::string& where) {
  ArchiveReader header(kind, bytes.substr(0, kHeaderBytes), where);
  char magic[kMagicBytes];
  u32 version = 0, reserved = 0;
  u64 size = 0, hash = 0;
  if (bytes.size() < kHeaderBytes) header.refuse("shorter than a header");
  header.raw(magic, sizeof magic);
  if (!is_of_kind(kind, bytes)) header.refuse("another kind of file, by its first bytes");
  field(header, version), field(header, reserved), field(header, size), field(header, hash);
  if (version != kind.version)
    fail(ErrorCode::kUnsupported, "[{}] {} file of version {}; this heddle reads version {}", where,
         kind.what, version, kind.version);
  const std::string_view fields = bytes.substr(kHeaderBytes);
  if (reserved != 0 || size != fields.size())
    fail(ErrorCode::kIo, "[{}] holds {} bytes after its header, which says {}; the file was cut or changed",
         where, fields.size(), size);
  if (hash != XXH3_64bits(fields.data(), fields.size()))
    fail(ErrorCode::kIo, "[{}] was changed after it was written: its checksum does not fit", where);
  return fields;
}

}  // namespace heddle
