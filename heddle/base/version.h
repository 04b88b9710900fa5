// Identifies this build of heddle. cmake/version.cmake generates its source.
#pragma once

#include <string_view>

namespace heddle {

// Text such as "0.1.0 (sources 0123456789abcdef)". Builds with one name make the same programs, proofs and
// device code.
std::string_view build_name();

}  // namespace heddle
