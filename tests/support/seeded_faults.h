// Programs with one fault, planted where it certainly is one.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/check/check.h"
#include "heddle/ir/program/program.h"

namespace heddle {

struct PlantedFault {
  std::vector<FaultKind> kinds;    // the report has one of these kinds
  std::vector<std::string> names;  // one message has all of these
  int edge = -1;                   // EdgeKind, if the fault is in an edge
};

struct FaultSeed {
  const char* name;
  // Returns false, and changes nothing, when the program has no place for the fault.
  bool (*plant)(Program& program, std::mt19937_64& random, PlantedFault& fault);
};

std::span<const FaultSeed> fault_seeds();

}  // namespace heddle
