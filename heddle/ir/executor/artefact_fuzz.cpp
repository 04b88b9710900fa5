// The fields of an artefact are either refused with an Error, or can be written again as the same bytes; the
// same holds for each program in it. The fuzzer fills in the name of the heddle that made it, because
// otherwise nothing else would be read.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/base/version.h"
#include "heddle/ir/executor/artefact.h"
#include "heddle/ir/program/archive.h"

namespace {

constexpr size_t kHeaderBytes = 32;

// The fields after the name of the heddle that made them.
std::string_view behind_name(std::string_view fields) {
  uint64_t size = 0;
  if (fields.size() < sizeof size) return {};
  std::memcpy(&size, fields.data(), sizeof size);
  fields.remove_prefix(sizeof size);
  return fields.substr(size_t(std::min<uint64_t>(size, fields.size())));
}

void run(std::string_view fields) {
  heddle::ArchiveWriter name;
  std::string made_by(heddle::build_name());
  heddle::field(name, made_by);
  const std::string bytes = heddle::frame_artefact(name.out.append(behind_name(fields)));
  const heddle::Artefact artefact = heddle::parse_artefact(bytes, "fuzz");
  HEDDLE_CHECK(heddle::serialise_artefact(artefact) == bytes);
  for (const heddle::ProvedProgram& program : artefact.programs)
    (void)artefact.program(program.rows, program.sequences);
  heddle::require_proofs(artefact);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, kHeaderBytes, run);
}
