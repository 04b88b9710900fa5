// Ctrl-C asks a command to end after the token at hand; a second one ends the process.
#pragma once

namespace heddle {

void watch_interrupts();
bool interrupted();
// What was asked is done: Ctrl-C can be pressed again.
void forget_interrupt();

}  // namespace heddle
