// Ctrl-C asks a command to end after the current token; a second one ends the process. A command that has not ended
// after 0.8 s, because it loads, compiles or reads a long prompt, is ended: what it flushed stays.
#pragma once

namespace heddle {

constexpr int kInterruptedCode = 130;  // exit code

void watch_interrupts();
bool interrupted();
// The request was served: Ctrl-C can be pressed again.
void forget_interrupt();
// From now on Ctrl-C stops an answer and not the program, however long its step takes.
void keep_running_on_interrupt();
// The end of the message where the process is ended; a literal: "kept nothing".
void note_what_stays(const char* text);
// Says that a line without an end is on the terminal's stderr, which is cleared before the process is ended.
void note_line_shown(bool shown);

}  // namespace heddle
