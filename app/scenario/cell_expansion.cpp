#include "app/scenario/cell_expansion.h"

#include <algorithm>

#include "sim/base/ordered_parts.h"

namespace moelab {
namespace {

/// Grid points that one thread expands in turn: enough to be worth a thread.
constexpr std::size_t kPointsAtOnce = 256;

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

void CellExpansion::add_cells_at(const Arm& arm, PointResolver& resolver, std::vector<Override> point,
                                 std::vector<Cell>& cells) {
  Cell cell;
  cell.config = resolver.config(point);
  cell.arm = arm.name;
  cell.contents = contents_;
  for (Override& change : point) cell.point.emplace_back(std::move(change.path), std::move(change.value));
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
  const auto expand = [&](std::size_t part) {
    std::vector<Cell> some;
    PointResolver resolver(base_, arm.overrides, parts_);
    const std::size_t first = part * kPointsAtOnce;
    for (std::size_t i = first; i < std::min(first + kPointsAtOnce, points); ++i)
      add_cells_at(arm, resolver, point_at(i), some);
    return some;
  };
  in_ordered_parts(
      (points + kPointsAtOnce - 1) / kPointsAtOnce, expand,
      [&](std::size_t, std::vector<Cell> some) { std::ranges::move(some, std::back_inserter(cells)); });
}

}  // namespace moelab
