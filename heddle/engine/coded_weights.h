// Says which weights that a checkpoint stores in codes stay so in memory, and which are expanded, and why.
#pragma once

#include <map>
#include <string>

#include "heddle/engine/model.h"

namespace heddle {

struct CodedWeights {
  struct Kind {
    i64 matrices = 0, bytes = 0;  // in memory
  };
  std::map<std::string, Kind> kept;      // by code
  std::map<std::string, Kind> expanded;  // by reason

  explicit CodedWeights(const ModelGraph& model);

  // Text such as "1.50 GB in f8e4m3"; "" where nothing stays in codes.
  std::string text() const;
  // One line for people where something is expanded; else "".
  std::string note() const;
};

// "1.50 GB"
std::string bytes_text(i64 bytes);

}  // namespace heddle
