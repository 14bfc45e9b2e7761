#include <string>

#include "sim/base/error.h"
#include "sim/model/start.h"

// Adding a start law is a new file that defines <name>_start_law() and a line here.
// clang-format off
#define MOELAB_START_LAWS(entry) \
  entry(normal)                  \
  entry(train_samples)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) StartLaw name##_start_law();
MOELAB_START_LAWS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<StartLaw>& start_laws() {
#define MOELAB_ENTRY(name) name##_start_law(),
  static const std::vector<StartLaw> table = {MOELAB_START_LAWS(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return table;
}

std::vector<std::string> start_law_names() {
  return names_of(start_laws());
}

const StartLaw& start_law(const std::string& name) {
  for (const StartLaw& law : start_laws()) {
    if (law.name == name) return law;
  }
  throw InvalidOption("model.router.init", unknown_name("init", name, start_law_names()));
}

}  // namespace moelab
