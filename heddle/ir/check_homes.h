// Where things live: rows and panels at their home, resident rows, ring and scratch in a worker's memory.
#pragma once

#include "heddle/ir/check_form.h"

namespace heddle::proof {

// Adds kResidency and kDoesNotFit.
void check_homes(const Form& form, Faults& faults);

}  // namespace heddle::proof
