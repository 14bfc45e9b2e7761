#include "app/run/provenance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <Eigen/Core>
#include <array>
#include <boost/version.hpp>
#include <ctime>
#include <fstream>

#include "app/run/durable_file.h"
#include "sim/base/kernels/kernels.h"

// The build passes these three; a build without them still runs.
#ifndef MOELAB_VERSION
#define MOELAB_VERSION "unknown"
#endif
#ifndef MOELAB_COMMIT
#define MOELAB_COMMIT "unknown"
#endif
#ifndef MOELAB_FLAGS
#define MOELAB_FLAGS "unknown"
#endif

namespace moelab {
namespace {

std::string processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

std::string program_version() {
  return MOELAB_VERSION;
}

std::string program_commit() {
  return MOELAB_COMMIT;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

Json provenance_json(const Session& session) {
  return {
      {"program", "moelab"},
      {"version", program_version()},
      {"commit", program_commit()},
      {"compiler", fmt::format("g++ {}", __VERSION__)},
      {"flags", MOELAB_FLAGS},
      {"libraries",
       {{"Eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
        {"Boost",
         fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
        {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                      NLOHMANN_JSON_VERSION_PATCH)},
        {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)}}},
      {"processor", processor_model()},
      {"vector_level", kernels::vector_level_name()},
      {"hostname", host_name()},
      {"threads", session.threads},
      {"arguments", session.arguments},
      {"profile", session.profile},
      {"started_at", utc_now()},
      {"journal", session.journal},
  };
}

void write_provenance(const std::filesystem::path& directory, const Session& session) {
  const std::filesystem::path file = directory / "provenance.json";
  Json provenance = provenance_json(session);
  provenance["earlier"] = Json::array();
  if (std::filesystem::exists(file)) {
    Json previous = read_json_file(file);
    Json earlier = previous.value("earlier", Json::array());
    previous.erase("earlier");
    earlier.push_back(std::move(previous));
    provenance["earlier"] = std::move(earlier);
  }
  replace_file(file, provenance.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace moelab
