#include "app/report/ledger_works.h"

#include <algorithm>
#include <map>
#include <utility>

namespace moelab {
namespace {

/// Of runs whose scenario names no source.
constexpr const char* kNoWork = "Without a source";

/// The work that a run's source names, up to its year or "(slides)": "Dikkala et al. 2023" of "Dikkala et al.
/// 2023, Fig. 3" and of "after Dikkala et al. 2023, Theorem 2".
std::string work_of(const std::string& source) {
  if (source.empty()) return kNoWork;
  const std::string after = "after ";
  const std::size_t begin = source.starts_with(after) ? after.size() : 0;
  for (std::size_t i = begin + 1; i < source.size(); ++i) {
    const char before = source[i - 1];
    if (source[i] == ',' && ((before >= '0' && before <= '9') || before == ')'))
      return source.substr(begin, i - begin);
  }
  return source.substr(begin);
}

}  // namespace

std::vector<LedgerWork> runs_by_work(const Ledger& ledger) {
  std::vector<LedgerWork> works;
  std::map<std::string, std::vector<const LedgerRun*>> by_name;
  for (const LedgerRun& run : ledger.runs) by_name[work_of(run.source)].push_back(&run);
  for (auto& [work, runs] : by_name) {
    std::stable_sort(runs.begin(), runs.end(),
                     [](const LedgerRun* left, const LedgerRun* right) { return left->name < right->name; });
    works.push_back({work, std::move(runs)});
  }
  std::stable_partition(works.begin(), works.end(),
                        [](const LedgerWork& work) { return work.name != kNoWork; });
  return works;
}

}  // namespace moelab
