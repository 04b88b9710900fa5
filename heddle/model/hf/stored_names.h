// Finds the tensors of a model in a checkpoint that names them otherwise: a base model without its prefix, or the
// text model inside one that also sees images. Knows which tensors a model may leave unread.
#pragma once

#include <string>
#include <vector>

#include "heddle/model/hf/checkpoint.h"

namespace heddle {

// The names of the tensors of a family's trunk: `root` + `layers` + "0." + ...
struct TrunkNames {
  const char* root = "model.";
  const char* layers = "layers.";
};

class StoredNames {
 public:
  StoredNames(const Checkpoint& checkpoint, const TrunkNames& trunk);

  // The name in the checkpoint of a tensor that the family calls `name`.
  std::string stored(const std::string& name) const;

 private:
  const Checkpoint& checkpoint_;
  std::string root_, stored_root_;
};

// The reason that a model may leave a stored tensor unread, which no part of it asks for.
struct Unread {
  enum Kind : unsigned char { kNeeded, kWithoutEffect, kOtherPart } kind = kNeeded;
  const char* what = "";  // kOtherPart: the part of a larger model that it belongs to
};

Unread why_unread(const Checkpoint& checkpoint, const std::string& name);

}  // namespace heddle
