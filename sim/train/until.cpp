#include "sim/train/until.h"

#include "sim/base/error.h"

namespace moelab {

void PlateauOptions::bind(Fields& fields) {
  fields.required().add("metric", metric, "a metric that the scenario records");
  fields.add("records", records, between(1, 1e6), "records without a fall of the metric");
  fields.add("relative", relative, fraction(), "a fall that counts, as a share of the least value before");
}

void UntilOptions::bind(Fields& fields) {
  fields.add("metric", metric, "a metric that the scenario records; needs below or above");
  fields.add("below", below, any_number(), "stop where the metric is at most this");
  fields.add("above", above, any_number(), "stop where the metric is at least this");
  fields.add("plateau", plateau, "stop where a metric no longer falls");
  fields.add("flops", flops, positive(),
             "stop where training has taken this many operations: 6 a step for each row and each parameter "
             "that it reaches");
}

void check(const UntilOptions& options) {
  const std::string path = "train.until";
  const int rules = (options.metric ? 1 : 0) + (options.plateau ? 1 : 0) + (options.flops ? 1 : 0);
  const int levels = (options.below ? 1 : 0) + (options.above ? 1 : 0);
  if (rules != 1) {
    throw InvalidOption(path, rules == 0 ? "names no rule; needs one of metric, plateau, flops"
                                         : "names several rules; needs one of metric, plateau, flops");
  }
  if (options.metric && levels != 1)
    throw InvalidOption(path + ".metric", "needs one level with it, below or above");
  if (!options.metric && levels > 0)
    throw InvalidOption(path + (options.below ? ".below" : ".above"), "given, but train.until.metric is not");
}

}  // namespace moelab
