#include "app/scenario/cell_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <boost/uuid/name_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "app/scenario/experiment_reader.h"
#include "app/scenario/scenario_shape.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Part of every cell's id: raised when a change of the program changes results, so that old ones are not
/// reused.
constexpr int kNumericsVersion = 3;

/// Length and checksum of a file's bytes.
std::string content_of_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  boost::crc_optimal<64, 0x42F0E1EBA9EA3693u, ~0ull, ~0ull, true, true> crc;
  std::vector<char> block(1 << 20);
  std::uint64_t bytes = 0;
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())), stream.gcount() > 0) {
    crc.process_bytes(block.data(), static_cast<std::size_t>(stream.gcount()));
    bytes += static_cast<std::uint64_t>(stream.gcount());
  }
  return fmt::format("{} bytes, {:016x}", bytes, crc.checksum());
}

/// The contents of a folder's files with their names, in the order of these.
std::string content_of_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string content;
  for (const fs::path& file : files)
    content += fmt::format("{}: {}\n", file.filename().string(), content_of_file(file));
  return content;
}

/// What stands for a file or a folder in a cell's id, wherever it lies.
std::string content_of(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;  // a sweep asks for the same file in every cell
  const std::lock_guard<std::mutex> lock(mutex);
  std::string& content = known[path];
  if (content.empty()) content = fs::is_directory(path) ? content_of_folder(path) : content_of_file(path);
  return content;
}

Json identity_of_data(const Json& data) {
  Json identity = without_defaults(data_shape(), data);
  for (const auto& [field, path] : files_of(read_data(data))) identity[field] = content_of(path);
  return identity;
}

}  // namespace

Json identity_of(const Json& config) {
  Json identity = without_defaults(config_shape(), config);
  identity["data"] = identity_of_data(config.at("data"));
  for (const auto& [name, data] : config.at("evaluations").items())
    identity["evaluations"][name] = identity_of_data(data);
  return identity;
}

std::string cell_id(const Json& identity) {
  const boost::uuids::name_generator_sha1 generator(boost::uuids::ns::oid());
  const boost::uuids::uuid hash =
      generator(fmt::format("{}\n{}", kNumericsVersion, canonical_text(identity)));
  std::string id;
  for (std::size_t byte = 0; byte < 8; ++byte) id += fmt::format("{:02x}", hash.data[byte]);
  return id;
}

}  // namespace moelab
