#include "tests/support/scratch.h"

#include <algorithm>

#include <unistd.h>

#include "heddle/base/file.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {

namespace fs = std::filesystem;

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "heddle-XXXXXX").string();
  HEDDLE_CHECK(::mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string Scratch::link_model(const std::string& from, const std::string& name) {
  fs::create_directory(folder_ / name);
  for (const auto& entry : fs::directory_iterator(from))
    fs::create_symlink(fs::absolute(entry.path()), folder_ / name / entry.path().filename());
  return path(name);
}

std::vector<std::string> Scratch::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder_))
    names.push_back(fs::relative(entry.path(), folder_).string());
  std::sort(names.begin(), names.end());
  return names;
}

void replace(const std::string& file, const std::string& content) {
  fs::remove(file);
  write_file(file, content);
}

void edit(const std::string& file, const std::function<void(std::string&)>& change) {
  std::string content = read_file(file);
  change(content);
  replace(file, content);
}

void edit_json(const std::string& file, const std::function<void(Json&)>& change) {
  edit(file, [&](std::string& content) {
    Json json = parse_json(content, file);
    change(json);
    content = json.dump();
  });
}

void edit_tensors(const std::string& file, const std::function<void(EditableTensors&)>& change) {
  EditableTensors tensors;
  {
    const TensorFile source(file);
    for (const auto& [name, entry] : source.tensors()) {
      const TensorView view = source.view(name);
      tensors[name] = {view.dtype, view.shape, {view.data.begin(), view.data.end()}};
    }
  }
  change(tensors);
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors)
    views.push_back({.name = name, .dtype = tensor.dtype, .shape = tensor.shape, .data = tensor.data});
  fs::remove(file);
  write_safetensors(file, std::move(views));
}

}  // namespace heddle
