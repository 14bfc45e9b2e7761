#pragma once

/// Writing of .npz files.

#include <string>
#include <utility>
#include <vector>

namespace moelab {

/// The bytes of a .npz file. Each array has a name and the bytes of its .npy file. Equal arrays give equal
/// bytes. Throws EnvironmentError beyond 4 GB.
std::string npz_bytes(const std::vector<std::pair<std::string, std::string>>& arrays);

}  // namespace moelab
