// Saved programs: the same bytes again, and an Error for every file that heddle did not write.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/registry.h"

namespace heddle {
namespace {

constexpr size_t kHeaderBytes = 32, kVersionAt = 8;

std::vector<std::string> seeds() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/fuzz/program"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string seed(const std::string& name) {
  return read_file(HEDDLE_SOURCE_DIR "/tests/fuzz/program/" + name + ".heddle");
}

// The message of the Error that parsing throws; "" when it accepts the bytes.
std::string refusal(const std::string& bytes) {
  try {
    parse_program(bytes, "x.heddle");
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& bytes, const std::string& why) {
  EXPECT_NE(refusal(bytes).find(why), std::string::npos) << why << " in: " << refusal(bytes);
}

// The fuzzer of programs makes calls of an op only if a seed has one.
TEST(ProgramFile, EveryOpHasASeed) {
  const std::vector<std::string> files = seeds();
  for (const OpSpec* op : all_ops())
    EXPECT_TRUE(std::ranges::any_of(
        files, [&](const std::string& file) { return file.ends_with("/" + op->name + ".heddle"); }))
        << op->name << " has none; `ninja write_programs` writes it";
}

TEST(ProgramFile, SameBytesAgainAndProved) {
  ASSERT_GE(seeds().size(), 20u);
  for (const std::string& file : seeds()) {
    const std::string bytes = read_file(file);
    ASSERT_EQ(refusal(bytes), "") << file << "; `ninja write_programs` writes it again";
    const Program program = parse_program(bytes, file);
    EXPECT_EQ(serialise_program(program), bytes) << file;
    const CheckReport report = check(program);
    EXPECT_TRUE(report.ok()) << file << ": " << report.faults[0].message;
  }
}

TEST(ProgramFile, SavedAndLoaded) {
  const std::string path = testing::TempDir() + "saved.heddle", bytes = seed("linear");
  save_program(parse_program(bytes, "linear"), path);
  EXPECT_EQ(serialise_program(load_program(path)), bytes);
  std::filesystem::remove(path);
}

TEST(ProgramFile, EveryCutIsRefused) {
  for (const std::string name : {"linear", "attention", "llama3-tiny"}) {
    const std::string bytes = seed(name);
    for (size_t length = 0; length < bytes.size(); ++length)
      ASSERT_NE(refusal(bytes.substr(0, length)), "") << name << " cut to " << length;
    // A header with the shorter length does not help either.
    for (size_t length = kHeaderBytes; length < bytes.size(); ++length)
      ASSERT_NE(refusal(frame_program(bytes.substr(kHeaderBytes, length - kHeaderBytes))), "")
          << name << " cut to " << length;
    EXPECT_NE(refusal(bytes + '\0'), "");
    expect_refused(frame_program(bytes.substr(kHeaderBytes) + '\0'), "bytes left over");
  }
}

TEST(ProgramFile, SizesThatCannotBeAreRefused) {
  constexpr i64 kMarked = 0x123456789ab;
  Program program = parse_program(seed("linear"), "linear");
  program.buffers[1].info.bytes = kMarked;
  std::string fields = serialise_program(program).substr(kHeaderBytes);
  const size_t at = fields.find(std::string(reinterpret_cast<const char*>(&kMarked), sizeof kMarked));
  ASSERT_NE(at, std::string::npos);
  for (const i64 bytes : {i64(-1), (i64(1) << 44) + 1, i64(1) << 62}) {
    std::memcpy(&fields[at], &bytes, sizeof bytes);
    expect_refused(frame_program(fields), " has " + std::to_string(bytes) + " bytes; must have 0 to");
  }
}

TEST(ProgramFile, EveryChangedByteIsSeen) {
  const std::string bytes = seed("linear");
  for (size_t at = 0; at < bytes.size(); ++at)
    for (char change : {'\x01', '\x80', '\xff'}) {
      std::string changed = bytes;
      changed[at] = char(changed[at] ^ change);
      ASSERT_NE(refusal(changed), "") << "byte " << at;
    }
}

// With a checksum that matches, a changed byte may make another program, which the check must then survive.
TEST(ProgramFile, EveryChangedFieldIsSurvived) {
  for (const std::string name : {"linear", "attention", "sample"}) {
    const std::string fields = seed(name).substr(kHeaderBytes);
    size_t refused = 0, rejected = 0;
    for (size_t at = 0; at < fields.size(); ++at)
      for (char change : {'\x01', '\x80', '\xff'}) {
        std::string changed = fields;
        changed[at] = char(changed[at] ^ change);
        const std::string framed = frame_program(changed);
        if (refusal(framed) != "")
          ++refused;
        else
          rejected += !check(parse_program(framed, name)).ok();
      }
    EXPECT_GT(refused, 100u) << name;
    EXPECT_GT(rejected, 100u) << name;
  }
}

TEST(ProgramFile, SaysWhatIsWrong) {
  const std::string bytes = seed("linear"), fields = bytes.substr(kHeaderBytes);
  std::string other = bytes;
  other[kVersionAt] = 2;
  expect_refused(other, "[x.heddle] program file of version 2; this heddle reads version 4");
  expect_refused("GGUF" + bytes.substr(4), "another kind of file");
  expect_refused(bytes.substr(0, 31), "shorter than a header");

  const size_t op = fields.find("linear", 8 + 8);  // after the program's own name
  other = fields;
  other.replace(op, 6, "lineal");
  expect_refused(frame_program(other), "[lineal] is not an op");
  other = fields;
  other[op + 6 + 4] ^= 1;  // main is a u32, followed by the hash
  expect_refused(frame_program(other), "linear was made with other arguments");
  other = fields;
  other.replace(fields.find("default", op), 7, "stage=x");  // the opcode's configuration
  expect_refused(frame_program(other), "'stage=x' in 'stage=x' is no value");
}

TEST(ProgramFile, KeepsTheConfigurationsOfOpcodes) {
  Program program = parse_program(seed("linear"), "linear");
  program.opcodes[0].config = OpConfig{{"rows", 64}, {"chunk", 32}}.reordering();
  const Program again = parse_program(serialise_program(program), "again");
  EXPECT_EQ(again.opcodes[0].config, program.opcodes[0].config);
  EXPECT_EQ(again.opcodes[0].text(), "linear (chunk=32,rows=64,reorders)");
  EXPECT_FALSE(check(again).ok()) << "linear has no such configuration";
}

}  // namespace
}  // namespace heddle
