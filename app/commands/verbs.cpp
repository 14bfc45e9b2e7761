#include "app/commands/verbs.h"

// Adding a verb is a new file that defines <name>_verb() and a line here.
// clang-format off
#define MOELAB_VERBS(entry) \
  entry(run)                \
  entry(tune)               \
  entry(plan)               \
  entry(new)                \
  entry(validate)           \
  entry(sample)             \
  entry(status)             \
  entry(claims)             \
  entry(import)             \
  entry(export)             \
  entry(table)              \
  entry(plot)               \
  entry(list)               \
  entry(schema)             \
  entry(compare)            \
  entry(agreement)          \
  entry(report)             \
  entry(reproduce)          \
  entry(verify)             \
  entry(slurm)              \
  entry(completion)         \
  entry(analyze)            \
  entry(check)              \
  entry(docs)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) Verb name##_verb();
MOELAB_VERBS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<Verb>& verbs() {
#define MOELAB_CALL(name) name##_verb(),
  static const std::vector<Verb> table = {MOELAB_VERBS(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

}  // namespace moelab
