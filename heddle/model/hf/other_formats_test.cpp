#include "heddle/model/hf/other_formats.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/hf/safetensors.h"

namespace heddle {
namespace {

struct Found {
  std::vector<std::string> files;
  const char* says;  // part of the message; "": none
};

TEST(OtherFormats, SayWhatAFolderIsAndWhatToDo) {
  const std::string folder = testing::TempDir() + "heddle_other_formats_test";
  for (const auto& [files, says] :
       {Found{{"adapter_config.json", "adapter_model.safetensors"}, "--adapter"},
        Found{{"adapter_config.json", "config.json", "model.safetensors"}, ""},
        Found{{"refs/main", "snapshots/0abc/config.json"}, "snapshots/0abc"},
        Found{{"models--org--name/snapshots/0abc/config.json"}, "models--org--name/snapshots/0abc"},
        Found{{"config.json", "model-Q4_K_M.gguf"}, "give the file itself"},
        Found{{"config.json", "pytorch_model.bin"}, ""},
        Found{{"config.json", "pytorch_model.bin.index.json"}, ""},
        Found{{"config.json", "model.pt"}, "name it pytorch_model.bin"},
        Found{{"params.json", "consolidated.safetensors"}, "params.json but no config.json"},
        Found{{"config.json", "tokenizer.model"}, ""}, Found{{"tokenizer.model"}, "tokenizer.model alone"},
        Found{{"config.json", "model-00001-of-00002.safetensors"}, ""}, Found{{"config.json"}, ""}}) {
    std::filesystem::remove_all(folder);
    for (const std::string& file : files) {
      const std::filesystem::path path = std::filesystem::path(folder) / file;
      std::filesystem::create_directories(path.parent_path());
      write_file(path, "{}");
    }
    std::string message;
    try {
      refuse_other_formats(folder);
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(says), std::string::npos) << files[0] << ": " << message;
    EXPECT_EQ(message.empty(), *says == 0) << message;
  }
  std::filesystem::remove_all(folder);
  EXPECT_THROW(refuse_other_formats("m/model.safetensors"), Error);
  EXPECT_NO_THROW(refuse_other_formats("m/none"));
}

TEST(OtherFormats, PlaceholdersOfFilesAreRecognised) {
  for (const auto& [content, says] :
       {std::pair{"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"},
        {"<!DOCTYPE html><html>", "a page of a web site"}}) {
    const std::string text = content;
    std::string message;
    try {
      parse_safetensors_header(std::as_bytes(std::span(text)), "w");
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace heddle
