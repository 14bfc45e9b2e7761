#include "app/dump/npz_bytes.h"

#include <libdeflate.h>

#include <cstdint>

#include "sim/base/error.h"

namespace moelab {

std::string npz_bytes(const std::vector<std::pair<std::string, std::string>>& arrays) {
  std::string bytes, directory;
  const auto append = [](std::string& to, std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
  };
  constexpr std::uint64_t kFirstDay = 0x21;  // 1980-01-01
  for (const auto& [array, content] : arrays) {
    const std::string name = array + ".npy";
    std::string fields;  // what both headers have in common
    append(fields, 20, 2);
    append(fields, 0, 2);
    append(fields, 0, 2);
    append(fields, 0, 2);
    append(fields, kFirstDay, 2);
    append(fields, libdeflate_crc32(0, content.data(), content.size()), 4);
    append(fields, content.size(), 4);
    append(fields, content.size(), 4);
    append(fields, name.size(), 2);
    append(fields, 0, 2);
    const std::uint64_t begin = bytes.size();
    bytes += std::string("PK\x03\x04") + fields + name + content;
    directory += std::string("PK\x01\x02");
    append(directory, 20, 2);
    directory += fields;
    append(directory, 0, 6);  // no comment, one disk, no attributes
    append(directory, 0, 4);
    append(directory, begin, 4);
    directory += name;
  }
  const std::uint64_t begin = bytes.size();
  if (begin + directory.size() > 0xFFFFFFFFu)
    throw EnvironmentError("the arrays take more than 4 GB, which a .npz file of this kind cannot hold");
  bytes += directory + "PK\x05\x06";
  append(bytes, 0, 4);
  append(bytes, arrays.size(), 2);
  append(bytes, arrays.size(), 2);
  append(bytes, directory.size(), 4);
  append(bytes, begin, 4);
  append(bytes, 0, 2);
  return bytes;
}

}  // namespace moelab
