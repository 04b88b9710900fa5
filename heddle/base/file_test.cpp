#include "heddle/base/file.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// A file of three pages of 'x'.
class LongFile {
 public:
  LongFile() : path_(testing::TempDir() + "heddle_file_test_" + std::to_string(::getpid())) {
    write_file(path_, std::string(bytes(), 'x'));
  }
  ~LongFile() { std::filesystem::remove(path_); }
  LongFile(const LongFile&) = delete;
  LongFile& operator=(const LongFile&) = delete;

  const std::string& path() const { return path_; }
  static size_t bytes() { return 3 * size_t(::sysconf(_SC_PAGESIZE)); }
  void cut(size_t bytes) const { ASSERT_EQ(::truncate(path_.c_str(), off_t(bytes)), 0); }

 private:
  std::string path_;
};

std::string message_of_change(const MappedFile& file) {
  try {
    file.require_unchanged();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    return error.what();
  }
  return "";
}

size_t count_x(const MappedFile& file) {
  size_t count = 0;
  for (const std::byte byte : file.bytes()) count += size_t(char(byte) == 'x');
  return count;
}

TEST(MappedFile, IsCutWhileItIsRead) {
  const LongFile file;
  const MappedFile map(file.path()), other(file.path());
  EXPECT_EQ(message_of_change(map), "");
  EXPECT_EQ(count_x(other), LongFile::bytes());
  const size_t left = LongFile::bytes() / 3 - 10;
  file.cut(left);
  EXPECT_EQ(count_x(map), left);
  EXPECT_NE(message_of_change(map).find("[" + file.path() + "] the file changed while it was read: it had "),
            std::string::npos);
  EXPECT_THROW(map.read([](std::string_view) -> int { fail(ErrorCode::kIo, "not this"); }), Error);
  std::filesystem::remove(file.path());
  write_file(file.path(), std::string(LongFile::bytes(), 'x'));
  EXPECT_NE(message_of_change(map), "") << "zeros were read, whatever has the name now";
}

TEST(MappedFile, IsWrittenToWhileItIsRead) {
  const LongFile file;
  const MappedFile map(file.path());
  std::filesystem::last_write_time(file.path(),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NE(message_of_change(map), "");
}

TEST(MappedFile, ANewFileOfThatNameIsNoChange) {
  const LongFile file;
  const MappedFile map(file.path());
  write_file(file.path(), "other");  // renames a new file
  EXPECT_EQ(count_x(map), LongFile::bytes());
  EXPECT_EQ(message_of_change(map), "");
}

TEST(MappedFile, ManyAreCutAtOnce) {
  const LongFile a;
  std::vector<MappedFile> maps;
  for (int i = 0; i < 20; ++i) maps.emplace_back(a.path());
  std::swap(maps[3], maps[7]);
  maps.erase(maps.begin() + 5);
  a.cut(0);
  for (const MappedFile& map : maps) {
    EXPECT_EQ(count_x(map), 0u);
    EXPECT_NE(message_of_change(map), "");
  }
}

// Touches a page that is not there, outside of every MappedFile.
void touch_lost_page() {
  const LongFile file;
  FILE* handle = std::fopen(file.path().c_str(), "r+");
  auto* at = static_cast<volatile char*>(
      ::mmap(nullptr, LongFile::bytes(), PROT_READ, MAP_SHARED, ::fileno(handle), 0));
  file.cut(0);
  std::filesystem::remove(file.path());
  std::exit(at[LongFile::bytes() - 1] == 0 ? 3 : 4);
}

void leave_by_own_handler() {
  std::signal(SIGBUS, [](int) { ::_exit(42); });
  const LongFile file;
  const MappedFile map(file.path());
  touch_lost_page();
}

#ifndef HEDDLE_SANITIZED  // which has a handler of its own
void die_without_handler() {
  const LongFile file;
  const MappedFile map(file.path());
  touch_lost_page();
}
#endif

TEST(MappedFileDeathTest, LeavesOtherFaultsToOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(leave_by_own_handler(), testing::ExitedWithCode(42), "");
#ifndef HEDDLE_SANITIZED
  EXPECT_EXIT(die_without_handler(), testing::KilledBySignal(SIGBUS), "");
#endif
}

TEST(Paths, AreNamedInErrors) {
  const std::string folder = testing::TempDir() + "heddle_paths_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder + "/inside");
  write_file(folder + "/file", "x");
  std::filesystem::create_symlink("loop", folder + "/loop");
  EXPECT_TRUE(is_folder(folder) && path_exists(folder) && !is_file(folder));
  EXPECT_TRUE(is_file(folder + "/file") && path_exists(folder + "/file") && !is_folder(folder + "/file"));
  EXPECT_FALSE(path_exists(folder + "/none") || is_file(folder + "/file/below") ||
               is_folder(folder + "/none"));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"file", "inside", "loop"}));
  for (const auto& look : {path_exists, is_file, is_folder}) {
    try {
      look(folder + "/loop");
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("[" + folder + "/loop] cannot look at it: "))
          << error.what();
    }
  }
  EXPECT_THROW(names_in(folder + "/none"), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle
