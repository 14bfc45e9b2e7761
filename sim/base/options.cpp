#include "sim/base/options.h"

#include <algorithm>

namespace moelab {

void Fields::add_number_or_list(const std::string& name, std::vector<double>& values, const Range& range,
                                const std::string& help) {
  with(name, help, values, [&](const About& about, auto& own) { real_or_reals(about, range, own); });
}

void Fields::add_name(const std::string& name, std::string& value, const std::vector<std::string>& names,
                      const std::string& help) {
  with(name, help, value, [&](const About& about, std::string& own) {
    const auto place = std::find(names.begin(), names.end(), own);
    int index = place == names.end() ? 0 : static_cast<int>(place - names.begin());
    choice(about, names, index);
    own = names[static_cast<std::size_t>(index)];
  });
}

}  // namespace moelab
