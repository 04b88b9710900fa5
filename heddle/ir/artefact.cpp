// Reads and writes an artefact's fields (ir/archive.h), and makes and checks its proofs.
#include "heddle/ir/artefact.h"

#include <algorithm>
#include <array>
#include <utility>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/version.h"
#include "heddle/ir/archive.h"
#include "heddle/ir/check.h"

namespace heddle {
namespace {

constexpr FileKind kKind = {kArtefactMagic, kArtefactVersion, "compiled program"};

template <class Archive>
void artefact_fields(Archive& a, Artefact& artefact) {
  field(a, artefact.made_by), field(a, artefact.compiler), field(a, artefact.model);
  field(a, artefact.checkpoint);
  visited(a, artefact.device);
  visited(a, artefact.settings);
  list(a, artefact.programs, 40, [&](ProvedProgram& program) {
    field(a, program.rows), field(a, program.sequences), field(a, program.bytes), field(a, program.proof);
    field(a, program.instructions), field(a, program.waits);
  });
  std::vector<std::pair<std::string, std::string>> code(artefact.code.begin(), artefact.code.end());
  list(a, code, 16, [&](auto& part) { field(a, part.first), field(a, part.second); });
  if (const auto at = std::ranges::adjacent_find(
          code, [](const auto& one, const auto& next) { return one.first >= next.first; });
      at != code.end())
    fail(ErrorCode::kIo, "[{}] its code is not in the order of its names: {} comes before {}", artefact.where,
         at->first, std::next(at)->first);
  artefact.code = DeviceCode(code.begin(), code.end());
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
  const auto bytes = file.bytes();
  return is_of_kind(kKind, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Artefact load_artefact(const std::string& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  const std::string_view text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  if (text.starts_with(kProgramMagic))
    fail(ErrorCode::kIo,
         "[{}] is one program, without a checkpoint or code; heddle compile makes what is wanted", path);
  Artefact artefact = parse_artefact(text, path);
  require_proofs(artefact);
  return artefact;
}

std::string print_artefact(const Artefact& artefact) {
  const ProgramSettings& s = artefact.settings;
  size_t code = 0;
  for (const auto& [name, bytes] : artefact.code) code += bytes.size();
  std::string text = fmt::format(
      "for         {}, checkpoint {}\ndevice      {}\nmade by     heddle {}\n"
      "programs    {} workers, {}, contexts of {}, {} sequences{}{}\n",
      artefact.model, artefact.checkpoint, artefact.device.text(), artefact.made_by, s.workers, s.scheduler,
      s.max_context, s.max_sequences, s.all_logits ? ", logits of every row" : "",
      s.fused ? "" : ", nothing fused");
  for (const ProvedProgram& program : artefact.programs)
    text += fmt::format("  {:>4} rows of {}: {} instructions, {} waits, proof {}\n", program.rows,
                        program.sequences, program.instructions, program.waits, program.proof);
  if (artefact.code.empty()) return text + "code        none\n";
  return text + fmt::format("code        {} pieces, {:.1f} MB, {}\n", artefact.code.size(),
                            double(code) * 1e-6, artefact.compiler);
}

}  // namespace heddle
