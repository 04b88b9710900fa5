// Recognises folders and files that people take for a model, and says what to do with them.
#pragma once

#include <string>

namespace heddle {

// Throws Error if `path` is known to be something else than a model's folder: an adapter, a cache of the hub,
// weights as pickles. Returns where nothing is recognised.
void refuse_other_formats(const std::string& path);
// Throws Error where the path is neither a folder nor a GGUF file, before anything looks for files in it.
void require_model_folder(const std::string& path);

}  // namespace heddle
