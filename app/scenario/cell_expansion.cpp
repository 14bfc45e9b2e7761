#include "app/scenario/cell_expansion.h"

#include <algorithm>
#include <future>
#include <optional>
#include <span>
#include <thread>

#include "app/scenario/cross_checks.h"
#include "app/scenario/resolved_parts.h"
#include "app/scenario/scenario_shape.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Grid points that one thread expands in turn: enough to be worth a thread.
constexpr std::size_t kPointsAtOnce = 256;

struct Resolved {
  Json config;
  std::optional<UserError> error;
};

/// The base configuration after these overrides, resolved and checked. `document` gets them unresolved.
Resolved resolve_config(const Json& base, std::span<const Override> overrides, Json& document) {
  document = base;
  try {
    apply_overrides(config_shape(), overrides, document);
    Json config = resolve(config_shape(), document, "");
    config["phases"] = resolved_phases(document, config);
    check_config(config);
    config["evaluations"] = resolved_evaluations(document, config.at("evaluations"));
    check_convergence(config);
    check_until(config);
    return {std::move(config), std::nullopt};
  } catch (const InvalidOption& error) {
    return {{}, UserError(error.path(), error.message())};
  }
}

/// The error at the override that brings it about: the one that wrote the value, or else the first that,
/// applied after those before it, makes the same error.
UserError explained(const UserError& error, const Json& base, std::span<const Override> overrides,
                    const Json& document) {
  const UserError moved = at_override(error, config_shape(), overrides, document);
  const bool is_at_override = std::any_of(overrides.begin(), overrides.end(), [&](const Override& change) {
    return change.place == error.path();
  });
  if (is_at_override || moved.path() != error.path()) return moved;
  for (std::size_t count = 0; count <= overrides.size(); ++count) {
    Json unused;
    const std::optional<UserError> found = resolve_config(base, overrides.first(count), unused).error;
    if (!found || found->path() != error.path() || found->message() != error.message()) continue;
    if (count == 0) break;
    const Override& cause = overrides[count - 1];
    return {cause.place + cause.element, "makes " + error.path() + " wrong: " + error.message()};
  }
  return error;
}

/// seeds.shared as Seeds has it.
std::uint64_t shared_streams(const Json& names) {
  Seeds seeds;
  for (const Json& name : names) {
    if (name == "problem") seeds.share(Purpose::problem);
    if (name == "train") seeds.share(Purpose::train_data);
    if (name == "train") seeds.share(Purpose::population);
    if (name == "test") seeds.share(Purpose::test_data);
    if (name == "test") seeds.share(Purpose::evaluation);
  }
  return seeds.shared;
}

}  // namespace

CellExpansion::CellExpansion(const Json& base, const Json& seeds)
    : base_(base),
      seed_count_(seeds.at("count")),
      seeds_{seeds.at("root"), 0, shared_streams(seeds.at("shared"))},
      contents_(std::make_shared<FileContents>()),
      identities_(*contents_) {}

void CellExpansion::add_cells_at(const Arm& arm, std::vector<Override> point, std::vector<Cell>& cells) {
  std::vector<Override> overrides = arm.overrides;
  overrides.insert(overrides.end(), point.begin(), point.end());
  Json changed;
  const Resolved resolved = resolve_config(base_, overrides, changed);
  if (resolved.error) throw explained(*resolved.error, base_, overrides, changed);
  Cell cell;
  cell.arm = arm.name;
  cell.contents = contents_;
  for (Override& change : point) cell.point.emplace_back(std::move(change.path), std::move(change.value));
  cell.config = parts_.config(resolved.config);
  cell.root_seed = seeds_.root;
  cell.shared_streams = seeds_.shared;
  const CellIds ids = identities_.of(cell.config);
  for (cell.seed = 0; cell.seed < seed_count_; ++cell.seed) {
    cell.id = ids.id(cell.seeds());
    cells.push_back(cell);
  }
}

void CellExpansion::add_cells(const Arm& arm, std::size_t points,
                              const std::function<std::vector<Override>(std::size_t)>& point_at,
                              std::vector<Cell>& cells) {
  const auto expand = [&](std::size_t first) {
    std::vector<Cell> some;
    for (std::size_t i = first; i < std::min(first + kPointsAtOnce, points); ++i)
      add_cells_at(arm, point_at(i), some);
    return some;
  };
  // Few points need no thread; where none can be started a part is expanded when it is asked for.
  const auto policy =
      points <= kPointsAtOnce ? std::launch::deferred : std::launch::async | std::launch::deferred;
  const std::size_t step = kPointsAtOnce * std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t first = 0; first < points; first += step) {
    std::vector<std::future<std::vector<Cell>>> parts;
    for (std::size_t i = first; i < std::min(first + step, points); i += kPointsAtOnce)
      parts.push_back(std::async(policy, expand, i));
    for (auto& part : parts) std::ranges::move(part.get(), std::back_inserter(cells));
  }
}

}  // namespace moelab
