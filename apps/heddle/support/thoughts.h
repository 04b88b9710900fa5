// Shows on stderr what a model thinks before it answers, dimmed on a terminal.
#pragma once

#include <string>

namespace heddle {

class Thoughts {
 public:
  void show(const std::string& text);
  // Ends the line, if thoughts were shown since the last end.
  void end();

 private:
  bool shown_ = false;
};

}  // namespace heddle
