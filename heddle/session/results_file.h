// The results of a batch: one JSON object per line, on disk before the next begins. Existing results count as
// done; a last line that a crash cut is removed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace heddle {

class ResultsFile {
 public:
  // Locks the file, so that no other run writes it. Calls `line` with each whole line and its number. Throws
  // Error(kIo).
  ResultsFile(std::string path, const std::function<void(std::string_view line, size_t number)>& line);
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;
  // Removes the file if it is new and empty.
  ~ResultsFile();

  // Bytes of an incomplete last line.
  size_t cut() const { return cut_; }
  // Adds a line and its end. Both are on disk when it returns. Throws Error(kIo), and then adds nothing.
  void append(std::string_view line);

 private:
  [[noreturn]] void fail_io(const char* what) const;

  // Closes it, and so gives up the lock, when the constructor throws too.
  struct Descriptor {
    int at = -1;
    ~Descriptor();
  };

  std::string path_;
  Descriptor descriptor_;
  bool regular_ = true, created_ = false;
  size_t size_ = 0, cut_ = 0;
};

}  // namespace heddle
