// The activation functions in fp64, for references of ops.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

double activation_reference(i32 kind, double x);        // f(x) of an ActivationKind
double activation_slope_reference(i32 kind, double x);  // f'(x)

}  // namespace heddle
