#pragma once

#include <string>

namespace moelab::kernels {

/// Of the library behind the kernels, "1.0.3": its own header takes seconds to read.
std::string highway_version();

}  // namespace moelab::kernels
