#include "app/scenario/cell_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/uuid/name_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <utility>
#include <vector>

#include "app/scenario/experiment_reader.h"
#include "app/scenario/scenario_shape.h"

namespace moelab {
namespace {

/// Part of every cell's id: raised when a change of the program changes results, so that old ones are not
/// reused.
constexpr int kNumericsVersion = 4;

Json identity_of_data(const Json& data, FileContents& contents) {
  Json identity = without_defaults(data_shape(), data);
  const auto files = files_of(read_data(data));
  for (const auto& [field, path] : files) identity.erase(field);
  for (const auto& [field, path] : files) {
    // A field of several files has a list of their contents.
    const std::string name = contents.name_of(path);
    if (!identity.contains(field)) {
      identity[field] = name;
    } else if (identity[field].is_string()) {
      identity[field] = Json::array({identity[field], name});
    } else {
      identity[field].push_back(name);
    }
  }
  return identity;
}

Json identity_of_phase(const Json& phase, FileContents& contents) {
  // As a scenario's parts, of which a phase has its own.
  Json identity = phase;
  for (const Field& field : config_shape().fields) {
    if (field.name == "loss" || field.name == "train")
      identity[field.name] = without_defaults(field.shape, phase.at(field.name));
  }
  identity["data"] = identity_of_data(phase.at("data"), contents);
  for (const auto& [name, data] : phase.at("evaluations").items())
    identity["evaluations"][name] = identity_of_data(data, contents);
  return identity;
}

/// Whether r of `gating.eval` is not softmax(γ). Soft and top-1 losses, shuffled metrics and saved
/// probabilities of such models were those of softmax(γ) for a while in numerics version 4: cells that go by
/// r have other ids.
bool is_asked_by_its_own_probabilities(const Json& model) {
  if (!model.contains("gating")) return false;
  const Json& rule = model.at("gating").at("eval");
  const std::string kind = rule.at("kind");
  return kind == "sigmoid" || kind == "relu" || kind == "dense_to_sparse" ||
         (kind == "soft_slots" && rule.at("slots") > 1);
}

/// Whether the router takes statistics of the rows that are measured with a row: groups of batch_size of
/// them, which were of 1024 rows for a while in numerics version 4.
bool is_measured_in_groups(const Json& model) {
  return model.contains("router") && model.at("router").at("kind") == "adaptive_clustering";
}

/// {part: what counts of it}, or {} where all of it is at its default.
Json identity_of_part(const std::string& part, const Json& value, FileContents& contents) {
  Json identity = without_defaults(config_shape(), Json::object({{part, value}}));
  if (part == "data") identity[part] = identity_of_data(value, contents);
  if (part == "model") {
    if (is_asked_by_its_own_probabilities(value)) identity[part]["asked_by"] = "r";
    if (is_measured_in_groups(value)) identity[part]["measured_in"] = "batch_size";
  }
  if (part == "evaluations") {
    for (const auto& [name, data] : value.items()) identity[part][name] = identity_of_data(data, contents);
  }
  if (part == "phases") {
    for (std::size_t i = 0; i < value.size(); ++i) identity[part][i] = identity_of_phase(value[i], contents);
  }
  return identity;
}

}  // namespace

std::string CellIdentities::text_of(const SharedPart& part) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = texts_.find(part); known != texts_.end()) return known->second;
  }
  std::string text = canonical_text(identity_of_part(part->first, part->second, contents_));
  text = text.substr(1, text.size() - 2);  // the member without the braces, or nothing
  const std::lock_guard lock(mutex_);
  return texts_.emplace(part, std::move(text)).first->second;
}

CellIds CellIdentities::of(const CellConfig& config) {
  // The canonical text of all parts, with the seeds where the order of keys has them.
  std::vector<std::pair<std::string, std::string>> texts;
  for (const SharedPart& part : *config.parts()) texts.emplace_back(part->first, text_of(part));
  std::sort(texts.begin(), texts.end());
  CellIds ids;
  // As boost::uuids::name_generator_sha1 does, which cannot go on from a common beginning: with ten seeds a
  // point that saves a fifth of the time of expanding a large sweep.
  const boost::uuids::uuid space = boost::uuids::ns::oid();
  ids.before_.process_bytes(space.data, space.size());
  const auto add_before = [&](const std::string& text) {
    ids.before_.process_bytes(text.data(), text.size());
  };
  add_before(fmt::format("{}\n{{", kNumericsVersion));
  for (const auto& [part, text] : texts) {
    if (text.empty()) continue;
    if (part < "seed")
      add_before(text + ',');
    else
      ids.after_ += ',' + text;
  }
  ids.after_ += '}';
  return ids;
}

std::string CellIds::id(const Seeds& seeds) const {
  const std::string shared = seeds.shared == 0 ? "" : fmt::format(R"(,"shared":{})", seeds.shared);
  const std::string rest =
      fmt::format(R"("seed":{{"index":{},"root":{}{}}}{})", seeds.index, seeds.root, shared, after_);
  boost::uuids::detail::sha1 hash = before_;
  hash.process_bytes(rest.data(), rest.size());
  boost::uuids::detail::sha1::digest_type digest;
  hash.get_digest(digest);
  // The first eight bytes of the name's UUID, whose version, 5, stands in the seventh.
  return fmt::format("{:08x}{:08x}", digest[0], (digest[1] & 0xffff0fff) | 0x5000);
}

}  // namespace moelab
