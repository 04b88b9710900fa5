// A folder for one test, and functions that damage files in it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/model/hf/safetensors.h"

namespace heddle {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Makes the folder `name` with links to all files of a model folder.
  std::string link_model(const std::string& from, const std::string& name);
  // All files in the folder, sorted.
  std::vector<std::string> files() const;

 private:
  std::filesystem::path folder_;
};

// Each of these replaces a file. If that was a link, its target does not change.
void replace(const std::string& file, const std::string& content);
void edit(const std::string& file, const std::function<void(std::string& content)>& change);
void edit_json(const std::string& file, const std::function<void(Json& json)>& change);

struct EditableTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};
using EditableTensors = std::map<std::string, EditableTensor>;
void edit_tensors(const std::string& file, const std::function<void(EditableTensors& tensors)>& change);

}  // namespace heddle
