// Models that the tools of Hugging Face's hub keep in a cache: models--org--name/snapshots/COMMIT, where refs/main names
// the commit that was downloaded last.
#pragma once

#include <string>

namespace heddle {

struct FoundModel {
  std::string path;
  std::string said;  // which snapshot of which model this is; "": the path is the one that was given
};

// The path that a person means by `given`:
// - a model in the cache, as its folder or as its name on the hub (org/name): the folder of its snapshot;
// - anything else: `given` itself.
// Throws Error(kIo) for a name of the hub that is neither a folder nor in the cache, with the command that downloads it,
// and for a model of which there is no snapshot, or none is refs/main among several.
FoundModel find_model(const std::string& given);

// The command that downloads the model of a folder.
std::string download_command(const std::string& folder);

}  // namespace heddle
