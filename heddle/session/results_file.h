// The results of a batch: a JSON object a line, each on disk before the next begins. What is there already counts as
// done; a last line that a crash cut is taken away.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace heddle {

class ResultsFile {
 public:
  // Locks the file, so that no other run writes it. Calls `line` with each whole line of it and that line's number.
  // Throws Error(kIo).
  ResultsFile(std::string path, const std::function<void(std::string_view line, size_t number)>& line);
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;
  // Leaves no empty file that was not there.
  ~ResultsFile();

  // Bytes of a line that was not whole.
  size_t cut() const { return cut_; }
  // Adds a line and its end; when it returns both are on disk. Throws Error(kIo), and adds nothing.
  void append(std::string_view line);

 private:
  [[noreturn]] void fail_io(const char* what) const;

  std::string path_;
  int descriptor_ = -1;
  bool regular_ = true, created_ = false;
  size_t size_ = 0, cut_ = 0;
};

}  // namespace heddle
