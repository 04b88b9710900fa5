// Reads and writes an artefact's fields (ir/program/archive.h), and makes and checks its proofs.
#include "heddle/ir/executor/artefact.h"

#include <algorithm>
#include <array>
#include <utility>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/version.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/program/archive.h"

namespace heddle {
namespace {

constexpr FileKind kKind = {kArtefactMagic, kArtefactVersion, "compiled program"};

// A map as a list in the order of its names, so that the same map makes the same bytes.
template <class Archive, class Map>
void by_name(Archive& a, Map& map, const char* what, const std::string& where) {
  std::vector<std::pair<std::string, std::string>> entries(map.begin(), map.end());
  list(a, entries, 16, [&](auto& entry) { field(a, entry.first), field(a, entry.second); });
  if (const auto at = std::ranges::adjacent_find(
          entries, [](const auto& one, const auto& next) { return one.first >= next.first; });
      at != entries.end())
    fail(ErrorCode::kIo, "[{}] its {} is not in the order of its names: {} comes before {}", where, what,
         at->first, std::next(at)->first);
  map = Map(entries.begin(), entries.end());
}

template <class Archive>
void artefact_fields(Archive& a, Artefact& artefact) {
  field(a, artefact.made_by), field(a, artefact.compiler), field(a, artefact.model);
  field(a, artefact.checkpoint);
  visited(a, artefact.device);
  by_name(a, artefact.settings, "settings", artefact.where);
  list(a, artefact.programs, 40, [&](ProvedProgram& program) {
    field(a, program.rows), field(a, program.sequences), field(a, program.bytes), field(a, program.proof);
    field(a, program.instructions), field(a, program.waits);
  });
  by_name(a, artefact.code, "code", artefact.where);
}

std::string proof_of(const ProvedProgram& program, const std::string& checker) {
  const std::string counted =
      fmt::format("{} {} {} {}", program.rows, program.sequences, program.instructions, program.waits);
  return digest_of(std::array<std::string_view, 3>{checker, counted, program.bytes});
}

}  // namespace

ProvedProgram prove(const Program& program, i32 rows, i32 sequences) {
  const CheckReport report = check_or_throw(program);
  ProvedProgram proved{.rows = rows,
                       .sequences = sequences,
                       .bytes = serialise_program(program),
                       .proof = "",
                       .instructions = report.instructions,
                       .waits = report.waits};
  proved.proof = proof_of(proved, std::string(build_name()));
  return proved;
}

void require_proofs(const Artefact& artefact) {
  for (const ProvedProgram& program : artefact.programs)
    if (const std::string proof = proof_of(program, artefact.made_by); proof != program.proof)
      fail(ErrorCode::kIo,
           "[{}] the proof of its program of {} rows is {}, of other bytes; that of these is {}",
           artefact.where, program.rows, program.proof, proof);
}

void prove_again(const Artefact& artefact) {
  for (const ProvedProgram& program : artefact.programs)
    check_or_throw(parse_program(program.bytes, artefact.where));
}

Program Artefact::program(i32 rows, i32 sequences) const {
  std::string known;
  for (const ProvedProgram& program : programs) {
    if (program.rows == rows && program.sequences == sequences) return parse_program(program.bytes, where);
    known += fmt::format("{}{} rows of {}", known.empty() ? "" : ", ", program.rows, program.sequences);
  }
  fail(ErrorCode::kInvalidArgument, "[{}] has no program for {} rows of {} sequences; there are {}", where,
       rows, sequences, known);
}

std::string frame_artefact(std::string_view fields) {
  return frame(kKind, fields);
}

std::string serialise_artefact(const Artefact& artefact) {
  Artefact copy = artefact;  // the walk also reads files, so it takes a non-const artefact
  return write_archive(kKind, copy, artefact_fields<ArchiveWriter>);
}

Artefact parse_artefact(std::string_view bytes, const std::string& where) {
  Artefact artefact;
  artefact.where = where;
  const std::string_view fields = unframe(kKind, bytes, where);
  ArchiveReader begin(kKind, fields, where);
  field(begin, artefact.made_by);  // first, because another heddle may write the other fields differently
  if (artefact.made_by != build_name())
    fail(ErrorCode::kUnsupported, "[{}] was compiled by heddle {}; this is {}; compile it again", where,
         artefact.made_by, build_name());
  ArchiveReader reader(kKind, fields, where);
  artefact_fields(reader, artefact);
  if (reader.left() != 0) reader.refuse("bytes left over");
  return artefact;
}

void save_artefact(const Artefact& artefact, const std::string& path) {
  write_file(path, serialise_artefact(artefact));
}

bool is_artefact(const std::string& path) {
  const MappedFile file(path);
  return file.read([](std::string_view bytes) { return is_of_kind(kKind, bytes); });
}

Artefact load_artefact(const std::string& path) {
  const MappedFile file(path);
  Artefact artefact = file.read([&](std::string_view text) {
    if (text.starts_with(kProgramMagic))
      fail(ErrorCode::kIo,
           "[{}] is one program, without a checkpoint or code; heddle compile makes what is wanted", path);
    return parse_artefact(text, path);
  });
  require_proofs(artefact);
  return artefact;
}

}  // namespace heddle
