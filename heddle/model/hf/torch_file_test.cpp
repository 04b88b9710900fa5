// Reads the files that scripts/goldens/make_torch_files.py wrote with torch.
#include "heddle/model/hf/torch_file.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/hf/checkpoint.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

const std::string kFolder = HEDDLE_SOURCE_DIR "/tests/goldens/torch/";

std::string torch_refusal(std::string_view content) {
  try {
    parse_torch_file(std::as_bytes(std::span(content)), "w.bin");
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(TorchFile, HasTheTensorsThatTorchReads) {
  const TensorFile expected(kFolder + "expected.safetensors");
  ASSERT_EQ(expected.tensors().size(), 16u);
  for (const char* name : {"zip.bin", "old.bin"}) {
    const TensorFile file(kFolder + name);
    EXPECT_EQ(file.tensors().size(), expected.tensors().size()) << name;
    for (const auto& [tensor, entry] : expected.tensors()) {
      ASSERT_TRUE(file.tensors().contains(tensor)) << name << ": " << tensor;
      const TensorEntry& read = file.tensors().at(tensor);
      EXPECT_EQ(read.type, entry.type) << tensor;
      EXPECT_EQ(read.shape, entry.shape) << tensor;
      EXPECT_TRUE(std::ranges::equal(file.bytes(tensor), expected.bytes(tensor))) << name << ": " << tensor;
      if (!entry.dtype) continue;
      const TensorView view = file.view(tensor);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data.data()) % size_t(size_of(view.dtype)), 0u) << tensor;
      EXPECT_TRUE(std::ranges::equal(view.data, expected.view(tensor).data)) << name << ": " << tensor;
    }
  }
}

TEST(TorchFile, RefusesAllElseByName) {
  for (const auto& [name, says] :
       {std::pair{"call", "asks for \"__builtin__.print\""},
        {"number", "holds a number under \"step\"; every value must be a tensor"},
        {"nested", "holds a dict under \"model\""},
        {"list", "it holds a list; a dict of tensors is wanted"},
        {"numpy", "\"numpy._core.multiarray._reconstruct\""},
        {"module", "\"torch.nn.modules.linear.Linear\""},
        {"sparse", "\"torch._utils._rebuild_sparse_tensor\""},
        {"quantised", "\"torch._utils._rebuild_qtensor\""},
        {"float8", "\"torch._utils._rebuild_tensor_v3\""},
        {"spread", "has the shape [1000], strides [0] and offset 0; its storage has 1"},
        {"torchscript", "is compressed; torch.save stores"},
        {"tar", "is a tar file"}}) {
    const std::string text = torch_refusal(read_file(kFolder + "refused/" + name + ".bin"));
    EXPECT_NE(text.find(says), std::string::npos) << name << ": " << text;
  }
  EXPECT_NE(torch_refusal("{}").find("is no file of torch.save"), std::string::npos);
}

TEST(TorchFile, NoPartOfAFileIsTakenForTheWhole) {
  for (const char* name : {"zip.bin", "old.bin"}) {
    const std::string content = read_file(kFolder + name);
    EXPECT_EQ(torch_refusal(content), "read");
    for (size_t size = 0; size < content.size(); ++size)
      EXPECT_NE(torch_refusal(std::string_view(content).substr(0, size)), "read") << name << ", " << size;
  }
}

TEST(TorchFile, DamageIsNamed) {
  const std::string content = read_file(kFolder + "zip.bin"),
                    path = testing::TempDir() + "heddle_damaged.bin";
  const size_t pickle = content.find("data.pkl");
  std::string damaged = content;
  damaged[content.find("FloatStorage", pickle) + 1] = 'm';
  EXPECT_NE(torch_refusal(damaged).find("[w.bin] is damaged: a part of"), std::string::npos)
      << torch_refusal(damaged);

  // A storage is checked when a tensor of it is read, also one that was rounded or does not lie in rows.
  const TensorFile whole(kFolder + "zip.bin");
  for (const std::string name : {"weight", "columns", "one"}) {
    damaged = content;
    damaged[whole.tensors().at(name).begin] ^= 1;
    write_file(path, damaged);
    const TensorFile file(path);
    const auto read = [&](const std::string& tensor) -> std::string {
      try {
        file.require_undamaged(tensor);
        if (file.tensors().at(tensor).dtype) file.view(tensor);
      } catch (const Error& error) {
        return error.what();
      }
      return "read";
    };
    EXPECT_NE(read(name).find("[" + path + "] is damaged"), std::string::npos) << name << ": " << read(name);
    EXPECT_NE(read(name), "read") << "again";
    EXPECT_EQ(read("bias"), "read");
  }
  std::filesystem::remove(path);
}

// torch.serialization.set_crc32_options(False) writes no checksums.
TEST(TorchFile, AFileWithoutChecksumsIsRead) {
  std::string content = read_file(kFolder + "zip.bin");
  for (size_t at = content.find("PK\1\2"); at != content.npos; at = content.find("PK\1\2", at + 1))
    content.replace(at + 16, 4, 4, '\0');
  EXPECT_EQ(torch_refusal(content), "read");
  content[content.find("FloatStorage", content.find("data.pkl")) + 1] = 'm';
  EXPECT_NE(torch_refusal(content).find("torch.Fm"), std::string::npos) << torch_refusal(content);
}

TEST(TorchFile, CompressedAndEncryptedFilesAreRefused) {
  const std::string content = read_file(kFolder + "zip.bin");
  const size_t entry = content.find("PK\1\2");
  for (const auto& [at, byte, says] :
       {std::tuple{8, '\1', "is encrypted"}, {10, '\x08', "is compressed"}, {24, '\x7f', "is compressed"}}) {
    std::string other = content;
    other[entry + size_t(at)] = byte;
    EXPECT_NE(torch_refusal(other).find(says), std::string::npos) << torch_refusal(other);
  }
}

TEST(TorchFile, IsReadAsACheckpoint) {
  const std::string folder = testing::TempDir() + "heddle_torch_file_test/";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::copy(kFolder + "zip.bin", folder + "pytorch_model.bin");
  EXPECT_EQ(Checkpoint(folder).weight("columns").shape, (std::vector<int64_t>{6, 5}));
  std::filesystem::rename(folder + "pytorch_model.bin", folder + "one.bin");
  std::filesystem::copy(kFolder + "old.bin", folder + "two.bin");
  write_file(folder + "pytorch_model.bin.index.json",
             R"({"weight_map": {"rows": "one.bin", "weight": "two.bin"}})");
  Checkpoint sharded(folder);
  const TensorFile expected(kFolder + "expected.safetensors");
  for (const char* name : {"rows", "weight"})
    EXPECT_TRUE(std::ranges::equal(sharded.weight(name).data, expected.view(name).data)) << name;
  sharded.forget("weight");
  EXPECT_EQ(sharded.weight("weight").data.size(), 24u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle
