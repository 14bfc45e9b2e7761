#pragma once

/// What this program was built from. A file of its own, since it is compiled anew after every commit.

#include <string>

namespace moelab {

/// "0.1.0".
std::string program_version();
/// The commit the program was built from, with "-dirty" after local changes; "unknown" outside a checkout.
std::string program_commit();
/// The compiler's options.
std::string program_flags();

}  // namespace moelab
