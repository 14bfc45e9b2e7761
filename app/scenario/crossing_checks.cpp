#include <fmt/format.h>

#include "app/figures/plotted_value.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

namespace moelab {

void check_crossing(const Scenario& scenario) {
  if (!scenario.crossing) return;
  const CrossingSearch& search = *scenario.crossing;
  const std::string place = join_path(join_path("sweep", search.path), "crossing");
  const References references(scenario);
  if (!search.arm.empty()) references.check_arm(search.arm, join_path(place, "arm"));
  if (!search.against.empty()) references.check_arm(search.against, join_path(place, "against"));
  const std::string metric_place = join_path(place, "metric");
  for (const std::string& arm : scenario.arms)
    if (search.searches(arm) || arm == search.against)
      check_plotted_value(references, arm, search.metric, metric_place);
  const PlottedValue metric(search.metric, references.table());
  if (metric.may_be_censored())
    throw UserError(metric_place,
                    fmt::format("got '{}', which may be censored; needs one that has a mean", search.metric));
  if (search.level && metric.is_positive() && *search.level <= 0)
    throw UserError(join_path(place, "level"),
                    fmt::format("got {}, which '{}', positive, never crosses; needs a number above 0",
                                *search.level, search.metric));
}

}  // namespace moelab
