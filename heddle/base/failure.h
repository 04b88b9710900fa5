// Messages about exceptions, for a person. Texts of the standard library such as "basic_string::at" tell nobody what to do,
// so only heddle's own reach a message.
#pragma once

#include <exception>
#include <string>

namespace heddle {

// The message of an Error. For the exceptions of files and memory: the file and the system's reason, or the bytes. Any other
// exception is a fault of heddle, and the message says what to report.
std::string message_of(const std::exception& failure);

}  // namespace heddle
