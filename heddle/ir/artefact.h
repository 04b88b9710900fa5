// Programs made ahead of time: for one checkpoint and one kind of device, each with its proof, and the code that the
// device runs them by. It holds no weights, no times, and nothing of the machine that made it: the same input makes the
// same bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ir/executor.h"

namespace heddle {

constexpr u32 kArtefactVersion = 2;

// What decides the programs beside model and device.
struct ProgramSettings {
  std::string scheduler;
  i32 workers = 0;
  i32 max_context = 0, max_sequences = 0;
  i32 page_size = 0, split_unit = 0, max_splits = 0;
  i32 kv_dtype = -1;  // of DType; -1: the weights'
  bool all_logits = false, fused = true;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("scheduler", s.scheduler), v("workers", s.workers);
    v("max_context", s.max_context), v("max_sequences", s.max_sequences), v("page_size", s.page_size);
    v("split_unit", s.split_unit), v("max_splits", s.max_splits), v("kv_dtype", s.kv_dtype);
    v("all_logits", s.all_logits), v("fused", s.fused);
  }
};

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
  ProgramSettings settings;
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

// What it holds and what it is for.
std::string print_artefact(const Artefact& artefact);

}  // namespace heddle
