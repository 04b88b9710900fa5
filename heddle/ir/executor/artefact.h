// An artefact holds programs made ahead of time for one checkpoint and one kind of device: a program for each
// class of steps with the check's proof of its bytes, and the compiled device code, keyed by a digest of
// everything it was compiled from. An engine that loads one takes every setting that decides programs from
// it, and builds, proves and compiles nothing.
// It holds no weights, no times and nothing of the machine that made it: the same input gives the same bytes.
// A proof is bound to the heddle that checked (version and sources, base/version.h), to the program's bytes
// and to the counts of the check. This protects against accidents, not against malice; prove_again() runs the
// check again.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ir/executor/executor.h"

namespace heddle {

constexpr u32 kArtefactVersion = 4;

// A program as a .heddle file, and the check's verdict on exactly these bytes.
struct ProvedProgram {
  i32 rows = 0, sequences = 0;  // the class of steps
  std::string bytes;
  std::string proof;  // digest of the heddle that checked, of the bytes, and of the check's counts
  u64 instructions = 0, waits = 0;
};

struct Artefact {
  std::string made_by;     // build_name() of the heddle that made it
  std::string compiler;    // compiler of the device code; empty: there is no code
  std::string model;       // the family; only printed
  std::string checkpoint;  // the checkpoint's fingerprint
  DeviceKind device;
  std::map<std::string, std::string> settings;  // what else decides the programs, by name (engine/options.h)
  std::vector<ProvedProgram> programs;
  DeviceCode code;
  std::string where;  // path of the file; not stored

  // Throws Error when there is no program for that class.
  Program program(i32 rows, i32 sequences) const;
};

// Checks the program; throws Error(kInternal) with the first fault.
ProvedProgram prove(const Program& program, i32 rows, i32 sequences);
// Throws Error(kInternal) when the check, run again, finds a fault.
void prove_again(const Artefact& artefact);

// Throws Error(kIo) when a proof belongs to other bytes or to another heddle's check.
void require_proofs(const Artefact& artefact);

// The file's bytes. Parsing throws Error when the file was cut, changed or made by another heddle; loading
// also requires the proofs.
std::string serialise_artefact(const Artefact& artefact);
Artefact parse_artefact(std::string_view bytes, const std::string& where);
void save_artefact(const Artefact& artefact, const std::string& path);
Artefact load_artefact(const std::string& path);
bool is_artefact(const std::string& path);            // looks at the first bytes
std::string frame_artefact(std::string_view fields);  // adds the header

}  // namespace heddle
