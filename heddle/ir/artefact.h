// Programs made ahead of time: for one checkpoint and one kind of device, each with its proof, and the code that the
// device runs them by. It holds no weights, no times, and nothing of the machine that made it: the same input makes the
// same bytes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ir/executor.h"

namespace heddle {

constexpr u32 kArtefactVersion = 3;

// A program as a .heddle file, and the verdict of the check on these very bytes.
struct ProvedProgram {
  i32 rows = 0, sequences = 0;  // of the class of steps
  std::string bytes;
  std::string proof;  // digest of the heddle that checked, the bytes, and what it counted
  u64 instructions = 0, waits = 0;
};

struct Artefact {
  std::string made_by;     // build_name() of a heddle
  std::string compiler;    // of the code; empty: there is none
  std::string model;       // the family, for people
  std::string checkpoint;  // its fingerprint
  DeviceKind device;
  std::map<std::string, std::string> settings;  // what else decides the programs, by name (engine/options.h)
  std::vector<ProvedProgram> programs;
  DeviceCode code;
  std::string where;  // the file; not kept

  // Throws Error where there is none for that class.
  Program program(i32 rows, i32 sequences) const;
};

// Checks the program; throws Error(kInternal) with the first fault.
ProvedProgram prove(const Program& program, i32 rows, i32 sequences);
// Throws Error(kInternal) where the check, run again, finds a fault.
void prove_again(const Artefact& artefact);

// Throws Error(kIo) where a proof is of another heddle's check or of other bytes.
void require_proofs(const Artefact& artefact);

// The file. Parsing throws Error on one that was cut, changed, or made by another heddle; loading requires proofs too.
std::string serialise_artefact(const Artefact& artefact);
Artefact parse_artefact(std::string_view bytes, const std::string& where);
void save_artefact(const Artefact& artefact, const std::string& path);
Artefact load_artefact(const std::string& path);
bool is_artefact(const std::string& path);            // by its first bytes
std::string frame_artefact(std::string_view fields);  // puts the header before

}  // namespace heddle
