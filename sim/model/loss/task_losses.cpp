#include "sim/base/error.h"
#include "sim/model/loss/task_loss.h"

// Adding a task loss is a new file that defines <name>_task_loss() and a line here.
// clang-format off
#define MOELAB_TASK_LOSSES(entry) \
  entry(mse)                      \
  entry(cross_entropy)            \
  entry(masked_tokens)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) TaskLossKind name##_task_loss();
MOELAB_TASK_LOSSES(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<TaskLossKind>& task_losses() {
#define MOELAB_CALL(name) name##_task_loss(),
  static std::vector<TaskLossKind> table = {MOELAB_TASK_LOSSES(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

}  // namespace

const std::vector<TaskLossKind>& task_loss_kinds() {
  return task_losses();
}

void add_task_loss_kind(TaskLossKind kind) {
  task_losses().push_back(std::move(kind));
}

std::vector<std::string> task_loss_names() {
  return names_of(task_losses());
}

const TaskLossKind& task_loss_kind(const std::string& name) {
  for (const TaskLossKind& kind : task_losses()) {
    if (kind.name == name) return kind;
  }
  throw InvalidOption("loss.task", unknown_name("loss", name, task_loss_names()));
}

}  // namespace moelab
