#include "app/run/available_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The number in a file of one, or in the line of `name`; infinite where there is none ("max").
double number_in(const std::string& file, const std::string& name = "") {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    double number = 0;
    if (words >> number) return number;
  }
  return kUnlimited;
}

/// What the groups of this process leave, each with those above it: limit less use.
double left_by_groups() {
  double left = kUnlimited;
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_second = controllers.empty();
    if (!is_second && controllers.find("memory") == std::string::npos) continue;
    const std::string root = is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string group = line.substr(second + 1);; group = group.substr(0, group.rfind('/'))) {
      const std::string folder = root + (group == "/" ? "" : group);
      const double limit = number_in(folder + (is_second ? "/memory.max" : "/memory.limit_in_bytes"));
      const double used = number_in(folder + (is_second ? "/memory.current" : "/memory.usage_in_bytes"));
      // Pages of files in the cache make room for others.
      const double cached = number_in(folder + "/memory.stat", is_second ? "file " : "total_cache ");
      if (std::isfinite(limit) && std::isfinite(used))
        left = std::min(left, std::max(0.0, limit - used + (std::isfinite(cached) ? cached : 0)));
      if (group.empty() || group == "/") break;
    }
  }
  return left;
}

}  // namespace

double available_bytes() {
  constexpr double kKilobyte = 1024;
  double available = std::min(kKilobyte * number_in("/proc/meminfo", "MemAvailable:"), left_by_groups());
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // Addresses that nothing lies at are lost to the arrays.
    const std::string status = "/proc/self/status";
    const double unused = kKilobyte * (number_in(status, "VmSize:") - number_in(status, "VmRSS:"));
    available =
        std::min(available, static_cast<double>(limit.rlim_cur) - (std::isfinite(unused) ? unused : 0));
  }
  return available;
}

void check_memory(double process_bytes, double cell_bytes, int threads, double available,
                  const char* way_out) {
  const double needed = process_bytes + cell_bytes * threads;
  if (needed <= available) return;
  const double fitting = std::floor((available - process_bytes) / std::max(cell_bytes, 1.0));
  throw EnvironmentError(
      fmt::format("the run needs about {:.0f} MB on {} threads, and {:.0f} MB are available; {}{}",
                  needed / 1e6, threads, available / 1e6,
                  fitting >= 1 ? fmt::format("--threads {:.0f} would fit", fitting)
                               : std::string("not even --threads 1 would fit"),
                  way_out));
}

}  // namespace moelab
