#include "app/dump/routing_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "app/dump/array_file.h"
#include "app/dump/record_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::vector<std::string> components_of(std::string_view name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    parts.emplace_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<int> number_of(const std::string& text) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

/// An array of a file that a name means, with the numbers in the rest of the array's name.
struct NameMatch {
  std::size_t place = 0;
  std::vector<int> numbers;
};

/// The arrays that `wanted` means. An array with this name is the only one. Otherwise the name may stand
/// between numbers: "router_logits" means "router_logits.0". "e_score_correction_bias" means
/// "model.layers.3.mlp.gate.e_score_correction_bias".
std::vector<NameMatch> matches_of(const std::vector<std::string>& names, const std::string& wanted) {
  std::vector<NameMatch> found;
  const std::vector<std::string> parts = components_of(wanted);
  for (std::size_t place = 0; place < names.size(); ++place) {
    if (names[place] == wanted) return {{place, {}}};
    const std::vector<std::string> own = components_of(names[place]);
    for (std::size_t begin = 0; begin + parts.size() <= own.size(); ++begin) {
      NameMatch match{place, {}};
      bool is_equal = true;
      for (std::size_t i = 0; i < own.size(); ++i) {
        const bool is_inside = i >= begin && i < begin + parts.size();
        const std::string& part = is_inside ? parts[i - begin] : own[i];
        if (is_inside && part != "*" && part != own[i]) is_equal = false;
        if (is_inside && part != "*") continue;
        if (const std::optional<int> number = number_of(own[i])) match.numbers.push_back(*number);
      }
      if (!is_equal || match.numbers.empty()) continue;
      found.push_back(std::move(match));
      break;
    }
  }
  std::sort(found.begin(), found.end(),
            [](const NameMatch& left, const NameMatch& right) { return left.numbers < right.numbers; });
  return found;
}

/// "router_logits.*" for "router_logits.12".
std::string pattern_of(const std::string& name) {
  std::vector<std::string> parts = components_of(name);
  for (std::string& part : parts) {
    if (number_of(part)) part = "*";
  }
  return fmt::format("{}", fmt::join(parts, "."));
}

/// Names that the producers give, in the order in which they are tried.
const std::vector<std::string>& usual_names(RoutingKind kind) {
  static const std::map<RoutingKind, std::vector<std::string>> names = {
      {RoutingKind::logits, {"router_logits", "gate_logits", "router_probs", "logits"}},
      {RoutingKind::probabilities, {"router_probs", "router_logits", "probs"}},
      {RoutingKind::scores, {"router_scores", "router_probs", "router_logits", "scores"}},
      {RoutingKind::gates, {"expert_mask", "gates", "router_scores", "router_logits"}},
      {RoutingKind::experts,
       {"routed_experts", "topk_ids_of_layer", "topk_ids", "exp_ids", "experts", "indices", "expert_ids"}},
      {RoutingKind::counts, {"logical_count", "exp_counts", "expert_counts", "counts"}}};
  return names.at(kind);
}

std::vector<NameMatch> chosen_arrays(const std::vector<std::string>& names, const std::string& wanted,
                                     const std::vector<std::string>& usual, const std::string& option,
                                     const std::string& file) {
  const auto listed = [&] {
    std::set<std::string> patterns;
    for (const std::string& name : names) patterns.insert(pattern_of(name));
    return fmt::format("{}", fmt::join(patterns, ", "));
  };
  if (!wanted.empty()) {
    std::vector<NameMatch> found = matches_of(names, wanted);
    if (found.empty())
      throw UserError(option, fmt::format("'{}' has no array '{}'; it has {}", file, wanted, listed()));
    return found;
  }
  if (names.size() == 1) return {{0, {}}};
  for (const std::string& name : usual) {
    std::vector<NameMatch> found = matches_of(names, name);
    if (!found.empty()) return found;
  }
  throw UserError(option, fmt::format("'{}' has the arrays {}; needs FILE:ARRAY", file, listed()));
}

std::vector<std::string> names_in(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> names;
  for (const NamedArray& array : arrays) names.push_back(array.name);
  return names;
}

RoutingBatch batch_of_arrays(const std::string& option, const std::filesystem::path& file,
                             const std::string& wanted, RoutingKind kind, std::optional<NpyType> stored_as,
                             std::vector<std::string>& checks) {
  const std::vector<NamedArray> arrays = array_file(file, option, stored_as);
  const std::vector<std::string> names = names_in(arrays);
  const std::vector<NameMatch> found = chosen_arrays(names, wanted, usual_names(kind), option, file.string());
  if (wanted.empty() && names.size() > 1)
    checks.push_back(fmt::format("{} reads {} of '{}'", option, pattern_of(names[found.front().place]),
                                 file.filename().string()));
  RoutingBatch batch;
  // Parts of an entry count from 0. Other second numbers are places in the model, as in block.3.layer.1.
  const bool has_parts = std::any_of(found.begin(), found.end(), [](const NameMatch& match) {
    return match.numbers.size() > 1 && match.numbers[1] == 0;
  });
  for (const NameMatch& match : found) {
    NpyReader array = arrays[match.place].open();
    const std::optional<int> number =
        match.numbers.empty() ? std::nullopt : std::optional(match.numbers.front());
    // Tuples of tuples: the second part of an entry is the experts of a router with a capacity.
    const bool is_part = has_parts && match.numbers.size() > 1 && components_of(wanted).back() != "*" &&
                         components_of(wanted).front() != "*";
    if (is_part && match.numbers[1] > 0) {
      if (match.numbers[1] > 1 || batch.entries.empty() || batch.entries.back().number != number)
        array.refuse("is a third part of an entry; needs (scores, experts), or a name with '*'");
      batch.entries.back().index = std::move(array);
      continue;
    }
    batch.entries.push_back({names[match.place], number, std::move(array), std::nullopt});
  }
  if (kind == RoutingKind::experts) {
    const auto map = std::find(names.begin(), names.end(), "last_physical_to_logical_map");
    if (map != names.end()) {
      const NpyReader table = arrays[static_cast<std::size_t>(map - names.begin())].open();
      const std::vector<std::int64_t> experts = whole_numbers(table, "experts");
      const std::int64_t width = table.shape().back();
      for (std::size_t at = 0; at < experts.size(); at += static_cast<std::size_t>(width))
        batch.logical.emplace_back(experts.begin() + static_cast<std::ptrdiff_t>(at),
                                   experts.begin() + static_cast<std::ptrdiff_t>(at) + width);
      checks.push_back(
          "ids are physical experts: last_physical_to_logical_map of the file names the experts");
    }
  }
  return batch;
}

// Files of lines

/// A field that a known producer writes, with the axes of its values.
struct ProducerField {
  std::vector<std::string> fields;
  const char* axes;
  const char* producer;
};

const std::vector<ProducerField>& producer_fields() {
  static const std::vector<ProducerField> fields = {
      {{"prompt_routed_experts", "routed_experts"}, "TLK", "vLLM"},
      {{"routed_experts"}, "TLK", "vLLM"},
      {{"meta_info.routed_experts"}, "TLK", "SGLang"},
      {{"exp_ids"}, "TKL", "OLMoE"}};
  return fields;
}

/// Megatron's trace: a record for each step, rank and layer; rows go by position first.
std::vector<RoutingBatch> megatron_batches(const RecordFile& file, RoutingKind kind,
                                           std::vector<std::string>& checks) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<int, RoutingEntry>> steps;
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<int, std::size_t>> seen;
  std::size_t left_out = 0, repeated = 0;
  for (std::size_t i = 0; i < file.records().size(); ++i) {
    const Json& record = file.records()[i];
    if (record.contains("block") && !is_text(record.at("block"), "decoder")) {
      ++left_out;
      continue;
    }
    const auto number = [&](const char* name) -> std::int64_t {
      if (!record.contains(name)) return 0;
      if (!record.at(name).is_number_integer()) file.refuse(i, fmt::format("'{}' is no whole number", name));
      return record.at(name).get<std::int64_t>();
    };
    const std::int64_t layer = number("layer"), rank = number("rank");
    constexpr std::int64_t kMostLayers = 1000000;
    if (layer < 0 || layer > kMostLayers) file.refuse(i, fmt::format("has the layer {}", layer));
    const std::pair step(number("step"), rank);
    const std::string name = fmt::format("step {}, layer {}", step.first, layer);
    if (const auto other = seen[step].find(static_cast<int>(layer)); other != seen[step].end()) {
      if (record.value("top_indices", Json()) != file.records()[other->second].value("top_indices", Json()))
        file.refuse(i, fmt::format("{} is recorded a second time with other experts", name));
      ++repeated;
      continue;
    }
    seen[step][static_cast<int>(layer)] = i;
    RoutingEntry entry{name, static_cast<int>(layer), std::nullopt, std::nullopt};
    if (kind == RoutingKind::experts) {
      std::vector<std::int64_t> ids;
      std::int64_t width = 0;
      if (!record.contains("top_indices") || !record.at("top_indices").is_array())
        file.refuse(i, "has no top_indices");
      for (const Json& row : record.at("top_indices")) {
        if (!row.is_array() || (width > 0 && static_cast<std::int64_t>(row.size()) != width))
          file.refuse(i, "top_indices is no regular list of lists");
        width = static_cast<std::int64_t>(row.size());
        for (const Json& id : row) {
          if (!id.is_number_integer()) file.refuse(i, "top_indices holds something else than whole numbers");
          ids.push_back(id.get<std::int64_t>());
        }
      }
      if (ids.empty()) file.refuse(i, "top_indices is empty");
      entry.array = kept_array(ids, {static_cast<std::int64_t>(ids.size()) / width, width}, file.place(),
                               name, file.path());
    } else {
      if (!record.contains("logit_offset") || !record.contains("logit_shape"))
        file.refuse(i, "has no logits (logit_offset, logit_shape); --experts reads its top_indices");
      const auto values = std::make_shared<const InputFile>(file.path().parent_path() /
                                                            fmt::format("logits_rank{}.bin", rank));
      const auto most = static_cast<std::int64_t>(values->size());
      const std::int64_t offset = number("logit_offset");
      NpyFormat format{NpyType::bfloat16, false, {}, static_cast<std::size_t>(offset)};
      for (const Json& length : record.at("logit_shape"))
        format.shape.push_back(length.is_number_integer() ? length.get<std::int64_t>() : 0);
      const std::vector<std::int64_t>& shape = format.shape;
      if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || offset < 0 || offset > most ||
          shape[0] > most / shape[1] || shape[0] * shape[1] > (most - offset) / 2)
        file.refuse(i, "names logits that its file does not hold");
      entry.array = NpyReader(values, std::move(format), file.place(), name);
    }
    steps[step].emplace(static_cast<int>(layer), std::move(entry));
  }
  if (left_out > 0)
    checks.push_back(
        fmt::format("{} of blocks other than 'decoder' are left out", counted(left_out, "record")));
  if (repeated > 0)
    checks.push_back(fmt::format("{} again with the same experts (recomputed): counted once",
                                 counted(repeated, "record is there")));
  std::vector<RoutingBatch> batches;
  for (auto& [step, layers] : steps) {
    RoutingBatch& batch = batches.emplace_back();
    batch.axes = kind == RoutingKind::experts ? "SBK" : "SBE";
    batch.producer = "Megatron-LM";
    batch.is_numbered = true;
    for (auto& [layer, entry] : layers) batch.entries.push_back(std::move(entry));
  }
  if (batches.empty()) file.refuse(0, "has no record of a decoder layer");
  return batches;
}

/// The first of these names among the fields.
std::string first_of(const std::vector<std::string>& fields, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (std::find(fields.begin(), fields.end(), name) != fields.end()) return name;
  }
  return "";
}

/// A table of choices or counts, one row for each: the counts of each layer.
std::vector<RoutingBatch> table_batches(const RecordFile& file, RoutingKind& kind, std::int64_t experts,
                                        std::vector<std::string>& checks) {
  const std::vector<std::string> fields = file.fields();
  const std::string layer = first_of(fields, {"layer", "layer_id", "layer_idx", "moe_layer"}),
                    expert = first_of(fields, {"expert", "expert_id", "expert_idx"}),
                    count = first_of(fields, {"count", "counts", "num_tokens", "tokens", "n", "frequency"}),
                    document = first_of(fields, {"document", "doc", "sequence", "request"}),
                    position = first_of(fields, {"position", "token_index", "token", "row"}),
                    rank = first_of(fields, {"rank", "k", "choice"});
  if (expert.empty()) {
    constexpr std::size_t kMostNamed = 6;
    const std::vector<std::string> first(
        fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(std::min(fields.size(), kMostNamed)));
    throw UserError(
        file.place(),
        fmt::format("'{}' has the columns {}{}; a table needs layer, expert and count, and a "
                    "matrix (n, E) is a .npy file",
                    file.path().string(), fmt::join(first, ", "), fields.size() > kMostNamed ? ", …" : ""));
  }
  if (experts == 0)
    throw UserError("--expert-count",
                    fmt::format("missing; '{}' leaves out experts without tokens, so it does "
                                "not tell how many there are",
                                file.path().string()));
  struct Choice {
    std::int64_t document, position, layer, rank, expert, count;
  };
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < file.records().size(); ++i) {
    const Json& record = file.records()[i];
    const auto number = [&](const std::string& name, std::int64_t otherwise) {
      if (name.empty()) return otherwise;
      if (!record.at(name).is_number_integer()) file.refuse(i, fmt::format("'{}' is no whole number", name));
      return record.at(name).get<std::int64_t>();
    };
    const Choice& own =
        choices.emplace_back(Choice{number(document, 0), number(position, 0), number(layer, 0),
                                    number(rank, 0), number(expert, 0), number(count, 1)});
    if (own.expert < 0 || own.expert >= experts)
      file.refuse(i, fmt::format("expert {}; ids are 0 to {}", own.expert, experts - 1));
    constexpr std::int64_t kMostLayers = 1000000, kMostTokens = std::int64_t{1} << 50;
    if (own.count < 0 || own.layer < 0 || own.layer > kMostLayers || own.count > kMostTokens)
      file.refuse(i, fmt::format("layer {} and count {}; needs layers to {} and counts to {}", own.layer,
                                 own.count, kMostLayers, kMostTokens));
  }
  RoutingBatch batch;
  batch.is_numbered = !layer.empty();
  std::map<std::int64_t, std::vector<std::int64_t>> of_layer;
  if (kind == RoutingKind::experts && !position.empty() && count.empty()) {
    // A row for each choice: the choices of a token in the order of their ranks.
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::tie(a.layer, a.document, a.position, a.rank) <
             std::tie(b.layer, b.document, b.position, b.rank);
    });
    std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> rows;
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> places_of;
    std::size_t width = 0;
    for (const Choice& choice : choices) {
      const std::pair place(choice.document, choice.position);
      auto& own = rows[choice.layer];
      auto& own_places = places_of[choice.layer];
      if (own_places.empty() || own_places.back() != place) {
        own_places.push_back(place);
        own.emplace_back();
      }
      own.back().push_back(choice.expert);
      width = std::max(width, own.back().size());
    }
    for (auto& [number, own] : rows) {
      if (places.empty()) places = places_of[number];
      if (places_of[number] != places)
        throw UserError(file.place(), fmt::format("'{}' has other tokens in layer {} than in the first",
                                                  file.path().string(), number));
      std::vector<std::int64_t> ids;
      for (std::vector<std::int64_t>& row : own) {
        row.resize(width, -1);
        ids.insert(ids.end(), row.begin(), row.end());
      }
      batch.entries.push_back(
          {fmt::format("layer {}", number), static_cast<int>(number),
           kept_array(ids, {static_cast<std::int64_t>(own.size()), static_cast<std::int64_t>(width)},
                      file.place(), fmt::format("layer {}", number), file.path()),
           std::nullopt});
    }
    for (const auto& [own, unused] : places) {
      if (batch.lengths.empty() ||
          own != places[static_cast<std::size_t>(
                            std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0}) - 1)]
                     .first)
        batch.lengths.push_back(0);
      ++batch.lengths.back();
    }
    if (document.empty()) batch.lengths.clear();
    return {std::move(batch)};
  }
  for (const Choice& choice : choices) {
    std::vector<std::int64_t>& own = of_layer[choice.layer];
    own.resize(static_cast<std::size_t>(experts), 0);
    own[static_cast<std::size_t>(choice.expert)] += choice.count;
  }
  if (kind == RoutingKind::experts)
    checks.push_back("the table does not tell which rows are one token: loads alone are measured");
  kind = RoutingKind::counts;
  for (const auto& [number, own] : of_layer) {
    const std::string name = fmt::format("layer {}", number);
    batch.entries.push_back({name, static_cast<int>(number),
                             kept_array(own, {experts}, file.place(), name, file.path()), std::nullopt});
  }
  batch.axes = "E";
  return {std::move(batch)};
}

std::vector<RoutingBatch> batches_of_records(const std::string& option, const std::filesystem::path& path,
                                             const std::string& wanted, RoutingKind& kind,
                                             std::int64_t experts, std::vector<std::string>& checks) {
  const RecordFile file(path, option);
  if (file.is_table()) return table_batches(file, kind, experts, checks);
  if (file.has("layer") && (file.has("top_indices") || file.has("logit_offset")))
    return megatron_batches(file, kind, checks);
  RoutingBatch batch;
  std::vector<std::string> fields = {wanted};
  for (const ProducerField& known : producer_fields()) {
    const bool is_there = std::all_of(known.fields.begin(), known.fields.end(),
                                      [&](const std::string& field) { return file.has(field); });
    const bool is_wanted =
        wanted.empty() || std::find(known.fields.begin(), known.fields.end(), wanted) != known.fields.end();
    if (!is_there || !is_wanted || kind != RoutingKind::experts) continue;
    fields = known.fields;
    batch.axes = known.axes;
    batch.producer = known.producer;
    if (fields.size() > 1)
      checks.push_back(fmt::format("the rows of a record come from {}", fmt::join(fields, ", then ")));
    break;
  }
  if (fields.front().empty())
    throw UserError(option, fmt::format("'{}' has the fields {}; needs FILE:FIELD", path.string(),
                                        fmt::join(file.fields(), ", ")));
  Column column = file.column(fields);
  if (!column.values)
    throw UserError(option, fmt::format("'{}:{}' holds names, needs numbers", path.string(), fields.back()));
  batch.lengths = std::move(column.lengths);
  batch.is_raw = column.is_raw;
  for (const char* const ids : {"token_ids", "input_ids", "tokens"}) {
    if (!file.has(ids)) continue;
    batch.token_counts = file.column({ids}).lengths;
    break;
  }
  batch.entries.push_back({fields.back(), std::nullopt, std::move(column.values), std::nullopt});
  return {std::move(batch)};
}

}  // namespace

std::pair<std::filesystem::path, std::string> split_array_name(const std::filesystem::path& given) {
  const std::string text = given.string();
  std::error_code unseen;
  if (std::filesystem::exists(given, unseen)) return {given, ""};
  for (std::size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1)) {
    if (std::filesystem::exists(text.substr(0, colon), unseen))
      return {text.substr(0, colon), text.substr(colon + 1)};
  }
  return {given, ""};
}

std::vector<std::int64_t> whole_numbers(const NpyReader& array, const std::string& what) {
  std::vector<std::int64_t> all;
  all.reserve(static_cast<std::size_t>(array.rows() * array.row_size()));
  const std::int64_t block = std::max<std::int64_t>(1, (1 << 20) / array.row_size());
  for (std::int64_t first = 0; first < array.rows(); first += block) {
    const Matrix values = array.read(first, std::min(block, array.rows() - first));
    for (Eigen::Index i = 0; i < values.rows(); ++i) {
      for (Eigen::Index j = 0; j < values.cols(); ++j) {
        const double value = values(i, j);
        if (std::floor(value) != value || std::abs(value) > 9e15)
          array.refuse(
              fmt::format("holds {} in {}; {} are whole numbers", value, array.place_of(first + i, j), what));
        all.push_back(static_cast<std::int64_t>(value));
      }
    }
  }
  return all;
}

std::vector<RoutingBatch> routing_batches(const std::string& option, const ArraySource& source,
                                          RoutingKind& kind, std::optional<NpyType> stored_as,
                                          std::int64_t experts, std::vector<std::string>& checks) {
  std::vector<RoutingBatch> batches;
  for (const std::vector<MemoryEntry>& given : source.batches) {
    RoutingBatch& batch = batches.emplace_back();
    for (const MemoryEntry& entry : given) {
      RoutingEntry& own =
          batch.entries.emplace_back(RoutingEntry{entry.name, entry.layer, std::nullopt, std::nullopt});
      batch.is_numbered = batch.is_numbered || entry.layer.has_value();
      if (entry.array) {
        NpyReader array(*entry.array, option, entry.name);
        if (entry.index) own.index.emplace(*entry.index, option, entry.name);
        own.array = stored_as && is_integer(array.type()) && byte_size(array.type()) == 2
                        ? array.as(*stored_as)
                        : array;
      }
    }
  }
  for (const std::filesystem::path& given : source.files) {
    const auto [file, wanted] = split_array_name(given);
    if (is_array_file(file, option)) {
      batches.push_back(batch_of_arrays(option, file, wanted, kind, stored_as, checks));
      continue;
    }
    std::vector<RoutingBatch> own = batches_of_records(option, file, wanted, kind, experts, checks);
    std::move(own.begin(), own.end(), std::back_inserter(batches));
  }
  return batches;
}

SideArray side_array(const std::string& option, const ArraySource& source,
                     const std::vector<std::string>& usual) {
  SideArray side;
  side.option = option;
  for (const std::vector<MemoryEntry>& batch : source.batches) {
    for (const MemoryEntry& entry : batch) {
      if (!entry.array) throw UserError(option, "holds None; needs an array");
      side.arrays.emplace_back(*entry.array, option, entry.name);
      side.numbers.push_back(entry.layer);
    }
  }
  for (const std::filesystem::path& given : source.files) {
    const auto [file, wanted] = split_array_name(given);
    if (!is_array_file(file, option)) {
      const RecordFile records(file, option);
      std::string field = wanted;
      for (const std::string& name : usual) {
        if (field.empty() && records.has(name)) field = name;
      }
      if (field.empty())
        throw UserError(option, fmt::format("'{}' has the fields {}; needs FILE:FIELD", file.string(),
                                            fmt::join(records.fields(), ", ")));
      Column column = records.column({field});
      side.texts.insert(side.texts.end(), column.texts.begin(), column.texts.end());
      side.lengths.insert(side.lengths.end(), column.lengths.begin(), column.lengths.end());
      if (column.values) {
        side.arrays.push_back(std::move(*column.values));
        side.numbers.emplace_back();
      }
      continue;
    }
    const std::vector<NamedArray> arrays = array_file(file, option, std::nullopt);
    for (const NameMatch& match : chosen_arrays(names_in(arrays), wanted, usual, option, file.string())) {
      if (const std::optional<std::vector<std::string>> texts = arrays[match.place].texts()) {
        side.texts.insert(side.texts.end(), texts->begin(), texts->end());
        continue;
      }
      side.arrays.push_back(arrays[match.place].open());
      side.numbers.push_back(match.numbers.empty() ? std::nullopt : std::optional(match.numbers.front()));
    }
  }
  return side;
}

}  // namespace moelab
