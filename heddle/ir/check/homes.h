// Checks placement: rows and panels at their homes; resident rows, ring and scratch within a worker's memory.
#pragma once

#include "heddle/ir/check/form.h"

namespace heddle::proof {

// Adds kResidency and kDoesNotFit.
void check_homes(const Form& form, Faults& faults);

}  // namespace heddle::proof
