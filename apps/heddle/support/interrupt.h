// Ctrl-C asks a command to end after the current token; a second one ends the process.
#pragma once

namespace heddle {

void watch_interrupts();
bool interrupted();
// The request was served: Ctrl-C can be pressed again.
void forget_interrupt();

}  // namespace heddle
