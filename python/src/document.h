// Writes the `help` of an op: its meaning and that of its arguments, as its header has them, and an example.
#pragma once

#include <map>
#include <string>

#include "python/src/entry.h"

namespace heddle::python {

// The comments of an op's header.
struct Notes {
  std::string about;                                   // at its head, with its line breaks
  std::map<std::string, std::string, std::less<>> of;  // at the arguments, by their names
};

// Reads them in the text of x.h. An argument's comment may go on in further lines.
Notes read_notes(std::string_view header);
// Returns the notes of an op of heddle; none for one of Python.
Notes notes_of(const OpSpec& op);

// Lines of Python that call the op, as its cases do; empty where it has none that a call could have.
std::string example_of(const OpEntry& entry);

// The whole text, after the line with the signature.
std::string document_of(const OpEntry& entry);

}  // namespace heddle::python
