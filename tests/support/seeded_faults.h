// Programs with one fault in them, planted where it is one for certain.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/check.h"
#include "heddle/ir/program.h"

namespace heddle {

struct PlantedFault {
  std::vector<FaultKind> kinds;    // of the report: one of them
  std::vector<std::string> names;  // one message has all of these
  int edge = -1;                   // EdgeKind where the fault is one of an edge
};

struct FaultSeed {
  const char* name;
  // False: the program has no place for it, and is as it was.
  bool (*plant)(Program& program, std::mt19937_64& random, PlantedFault& fault);
};

std::span<const FaultSeed> fault_seeds();

}  // namespace heddle
