// Artefacts as files: the same bytes again, and an Error for every file that heddle did not write for this checkpoint.
#include "heddle/ir/executor/artefact.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/version.h"

namespace heddle {
namespace {

constexpr size_t kHeaderBytes = 32;

Artefact small() {
  const std::string file = HEDDLE_SOURCE_DIR "/tests/fuzz/program/linear.heddle";
  return {.made_by = std::string(build_name()),
          .compiler = "NVRTC 13.0",
          .model = "llama",
          .checkpoint = "0123",
          .device = {"h200", "megakernel", "sm_90a", 132},
          .settings = {{"scheduler", "dag"}, {"workers", "132"}},
          .programs = {prove(load_program(file), 1, 1)},
          .code = {{"aa", std::string("\0cubin", 6)}, {"bb", ""}},
          .where = "x.heddle"};
}

std::string refusal(const std::string& bytes) {
  try {
    require_proofs(parse_artefact(bytes, "x.heddle"));
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& bytes, const std::string& why) {
  EXPECT_NE(refusal(bytes).find(why), std::string::npos) << why << " in: " << refusal(bytes);
}

TEST(ArtefactFile, SameBytesAgain) {
  const std::string bytes = serialise_artefact(small());
  ASSERT_EQ(refusal(bytes), "");
  const Artefact again = parse_artefact(bytes, "x.heddle");
  EXPECT_EQ(serialise_artefact(again), bytes);
  EXPECT_EQ(again.code, small().code);
  EXPECT_EQ(again.device.text(), "h200: sm_90a, 132 multiprocessors");
  EXPECT_EQ(again.settings, small().settings);
  EXPECT_EQ(serialise_program(again.program(1, 1)), small().programs[0].bytes);
  EXPECT_THROW((void)again.program(8, 1), Error);
  EXPECT_NO_THROW(prove_again(again));
}

TEST(ArtefactFile, SavedAndLoaded) {
  const std::string path = testing::TempDir() + "artefact.heddle";
  save_artefact(small(), path);
  EXPECT_TRUE(is_artefact(path));
  EXPECT_EQ(serialise_artefact(load_artefact(path)), serialise_artefact(small()));
  std::filesystem::remove(path);
  const std::string program = HEDDLE_SOURCE_DIR "/tests/fuzz/program/linear.heddle";
  EXPECT_FALSE(is_artefact(program));
  try {
    load_artefact(program);
    FAIL() << "it is no artefact";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("heddle compile makes"), std::string::npos) << error.what();
  }
}

TEST(ArtefactFile, EveryCutAndChangedByteIsRefused) {
  const std::string bytes = serialise_artefact(small());
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_NE(refusal(bytes.substr(0, length)), "") << "cut to " << length;
    std::string changed = bytes;
    changed[length] = char(changed[length] ^ 1);
    ASSERT_NE(refusal(changed), "") << "byte " << length;
  }
  // A header with the shorter length does not help either.
  for (size_t length = kHeaderBytes; length < bytes.size(); ++length)
    ASSERT_NE(refusal(frame_artefact(bytes.substr(kHeaderBytes, length - kHeaderBytes))), "")
        << "cut to " << length;
  expect_refused(frame_artefact(bytes.substr(kHeaderBytes) + '\0'), "bytes left over");
}

// With a checksum that matches.
TEST(ArtefactFile, AProofIsOfItsBytes) {
  const std::string fields = serialise_artefact(small()).substr(kHeaderBytes);
  const size_t begin = fields.find("HEDDLE\r\n"), size = small().programs[0].bytes.size();
  ASSERT_NE(begin, fields.npos);
  for (size_t at = begin; at < begin + size; ++at) {
    std::string changed = fields;
    changed[at] = char(changed[at] ^ 1);
    expect_refused(frame_artefact(changed), "of other bytes");
  }
  Artefact counted = small();
  ++counted.programs[0].waits;
  expect_refused(serialise_artefact(counted), "the proof of its program of 1 rows");
}

TEST(ArtefactFile, CodeIsInTheOrderOfItsNames) {
  const std::string fields = serialise_artefact(small()).substr(kHeaderBytes);
  const size_t second = fields.rfind("bb");
  ASSERT_NE(second, fields.npos);
  for (const std::string name : {"a0", "aa"})
    expect_refused(frame_artefact(std::string(fields).replace(second, 2, name)), "aa comes before " + name);
}

TEST(ArtefactFile, IsOfOneHeddle) {
  Artefact other = small();
  other.made_by = "9.9.9 (sources 0)";
  const std::string why = refusal(serialise_artefact(other));
  EXPECT_NE(why.find("compiled by heddle 9.9.9 (sources 0); this is "), std::string::npos) << why;
  EXPECT_NE(why.find(build_name()), std::string::npos) << why;
}

}  // namespace
}  // namespace heddle
