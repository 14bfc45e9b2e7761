#include "app/dump/routing_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "app/dump/model_facts.h"
#include "app/dump/routing_axes.h"
#include "app/dump/routing_source.h"
#include "app/dump/value_scan.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

struct KindTraits {
  RoutingKind kind;
  const char* option;
  ArraySource RoutingInput::*source;
};

constexpr KindTraits kKinds[] = {{RoutingKind::probabilities, "--probs", &RoutingInput::probs},
                                 {RoutingKind::logits, "--logits", &RoutingInput::logits},
                                 {RoutingKind::scores, "--scores", &RoutingInput::scores},
                                 {RoutingKind::gates, "--gates", &RoutingInput::gates},
                                 {RoutingKind::counts, "--counts", &RoutingInput::counts},
                                 {RoutingKind::experts, "--experts", &RoutingInput::experts}};

constexpr KindTraits kEarlierKinds[] = {
    {RoutingKind::probabilities, "--previous-probs", &RoutingInput::previous_probs},
    {RoutingKind::logits, "--previous-logits", &RoutingInput::previous_logits},
    {RoutingKind::experts, "--previous-assignments", &RoutingInput::previous_assignments}};

/// With more rows, a pattern that all of them have is no chance.
constexpr std::int64_t kManyRows = 16;

class RoutingBuilder {
 public:
  explicit RoutingBuilder(const RoutingInput& input) : input_(input) {}

  RouterDump build() {
    read_facts();
    choose_kind();
    std::vector<RoutingBatch> batches =
        routing_batches(main_->option, input_.*main_->source, kind_, stored_as_, experts_, routing_.checks);
    read_sides();
    drop_equal_ranks(batches);
    if (kind_ == RoutingKind::counts) {
      read_counts(batches);
      return std::move(routing_);
    }
    LayersOf layers = read_layers(main_->option, kind_, batches, true);
    check_batches(batches.size(), layers.size());
    if (ids_) {
      RoutingKind of_ids = RoutingKind::experts;
      std::vector<RoutingBatch> id_batches = routing_batches(ids_->option, input_.*ids_->source, of_ids,
                                                             std::nullopt, experts_, routing_.checks);
      put_ids_beside(layers, id_batches);
    }
    read_rows(batches);
    for (LayerRouting& layer : layers) {
      layer.rows = routing_.rows;
    }
    finish_layers(layers, kind_);
    routing_.is_one_array = is_one_array_ && routing_.layers.size() == 1;
    read_earlier();
    read_labels_and_tokens();
    for (LayerRouting& layer : routing_.previous) {
      layer.is_only_layer = routing_.layers.size() == 1;
    }
    for (LayerRouting& layer : routing_.layers) {
      layer.is_only_layer = routing_.layers.size() == 1;
      if (layer.rule.top_k > routing_.top_k) routing_.top_k = layer.rule.top_k;
    }
    describe();
    return std::move(routing_);
  }

 private:
  using LayersOf = std::vector<LayerRouting>;

  void note(std::string text) { routing_.checks.push_back(std::move(text)); }

  // What was said.

  void read_facts() {
    if (!input_.model.is_null()) facts_ = model_facts(input_.model, input_.model_place);
    experts_ = input_.expert_count > 0 ? input_.expert_count : facts_.experts.value_or(0);
    top_k_ = input_.top_k > 0 ? input_.top_k : facts_.top_k.value_or(0);
    if (!input_.dtype.empty()) {
      stored_as_ = type_of_name(input_.dtype);
      if (!stored_as_)
        throw UserError("--dtype",
                        unknown_name("type", input_.dtype, {"bfloat16", "float16", "int32", "uint16"}));
    }
    for (const char letter : input_.axes) {
      if (kCanonicalAxes.find(letter) == std::string_view::npos ||
          std::count(input_.axes.begin(), input_.axes.end(), letter) > 1)
        throw UserError(
            "--axes",
            fmt::format("got '{}', needs each of the letters L (layers), N (steps), B (sequences), S "
                        "(positions), T (tokens), E (experts), K (choices) at most once",
                        input_.axes));
    }
    for (std::size_t begin = 0; begin < input_.layers.size();) {
      const std::size_t end = std::min(input_.layers.find(',', begin), input_.layers.size());
      const std::string part = input_.layers.substr(begin, end - begin);
      const std::size_t dash = part.find('-', 1);
      const auto number = [&](const std::string& text) {
        int value = -1;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() || value < 0)
          throw UserError("--layers", fmt::format("got '{}', needs numbers such as 1,2,5-8", input_.layers));
        return value;
      };
      const int first = number(part.substr(0, dash)),
                last = dash == std::string::npos ? first : number(part.substr(dash + 1));
      constexpr int kMostLayers = 4096;
      if (last < first || last - first >= kMostLayers)
        throw UserError("--layers", fmt::format("got '{}', needs rising ranges of at most {} layers",
                                                input_.layers, kMostLayers));
      for (int layer = first; layer <= last; ++layer) given_layers_.push_back(layer);
      begin = end + 1;
    }
    for (const int layer : given_layers_) {
      if (std::count(given_layers_.begin(), given_layers_.end(), layer) > 1)
        throw UserError("--layers",
                        fmt::format("got '{}', which names layer {} twice", input_.layers, layer));
    }
    const std::string score = input_.score.empty() ? facts_.score : input_.score;
    if (score == "sigmoid")
      score_ = SelectionRule::Score::sigmoid;
    else if (score == "selected")
      score_ = SelectionRule::Score::selected;
    else if (!score.empty() && score != "softmax")
      throw UserError("--score", unknown_name("score", score, {"softmax", "sigmoid", "selected"}));
    groups_ = facts_.groups;
    kept_groups_ = facts_.kept_groups;
    if (!input_.groups.empty()) {
      const std::size_t colon = input_.groups.find(':');
      const auto number = [&](const std::string& text) {
        int value = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size() ? value : 0;
      };
      if (colon != std::string::npos) {
        groups_ = number(input_.groups.substr(0, colon));
        kept_groups_ = number(input_.groups.substr(colon + 1));
      }
      if (colon == std::string::npos || groups_ < 1 || kept_groups_ < 1 || kept_groups_ > groups_)
        throw UserError("--groups", fmt::format("got '{}', needs GROUPS:KEPT such as 4:2", input_.groups));
    }
  }

  void choose_kind() {
    for (const KindTraits& traits : kKinds) {
      if (!(input_.*traits.source).is_given()) continue;
      if (!main_) {
        main_ = &traits;
        continue;
      }
      const bool is_beside = traits.kind == RoutingKind::experts && main_->kind != RoutingKind::counts;
      if (!is_beside)
        throw UserError(traits.option,
                        fmt::format("given, but so is {}; needs one of the two", main_->option));
      ids_ = &traits;
    }
    if (!main_)
      throw UserError("--probs",
                      "no input given; needs one of --logits, --probs, --scores, --gates, --experts or "
                      "--counts (moelab analyze --help)");
    kind_ = main_->kind;
  }

  // What stands beside.

  void read_sides() {
    if (!input_.mask.is_text("none"))
      mask_ = side_array("--mask", input_.mask, {"attention_mask", "padding_mask", "mask"});
    tokens_ = side_array("--tokens", input_.tokens, {"input_ids", "token_ids", "tokens"});
    if (input_.tokens.is_given() && !tokens_.texts.empty())
      throw UserError("--tokens", "holds names; needs ids of tokens");
    labels_ = side_array("--labels", input_.labels, {"labels", "domain", "domains", "label"});
    lengths_ = side_array("--lengths", input_.lengths, {"lengths", "extend_seq_lens", "seq_lens"});
    const bool is_word = input_.documents.is_text("rows") || input_.documents.is_text("lines") ||
                         input_.documents.is_text("windows");
    if (!is_word)
      documents_ = side_array("--documents", input_.documents, {"document", "documents", "document_ids"});
  }

  /// The shapes (B, S) that arrays beside give a batch, in the files' order of axes.
  std::vector<std::vector<std::int64_t>> side_shapes(std::size_t batch, std::size_t batches) const {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const SideArray* const side : {&mask_, &tokens_, &labels_}) {
      if (!side->lengths.empty()) continue;
      if (side->arrays.size() == batches && batches > 0) {
        shapes.push_back(side->arrays[batch].shape());
      } else if (side->arrays.size() == 1 && batches > 1 &&
                 side->arrays[0].rows() == static_cast<std::int64_t>(batches)) {
        shapes.emplace_back(side->arrays[0].shape().begin() + 1, side->arrays[0].shape().end());
      }
    }
    shapes.insert(shapes.end(), input_.side_shapes.begin(), input_.side_shapes.end());
    std::erase_if(shapes, [](const auto& shape) { return shape.size() != 2; });
    return shapes;
  }

  /// Whether rows go by position first, and the mask of the batch goes by sequence: its ones are then without
  /// gaps along its second axis alone.
  bool is_mask_by_sequence(std::size_t batch, std::size_t batches) const {
    const std::string& axes = input_.axes;
    const bool is_position_first = axes.find('S') != std::string::npos &&
                                   axes.find('B') != std::string::npos && axes.find('S') < axes.find('B');
    if (!is_position_first || mask_.arrays.size() != batches || mask_.arrays[batch].shape().size() != 2)
      return false;
    const NpyReader& mask = mask_.arrays[batch];
    const std::vector<std::int64_t> values = whole_numbers(mask, "masks");
    const std::int64_t rows = mask.shape()[0], columns = mask.shape()[1];
    const auto has_gaps = [&](std::int64_t lines, std::int64_t length, std::int64_t line_step,
                              std::int64_t step) {
      for (std::int64_t line = 0; line < lines; ++line) {
        int changes = 0;
        for (std::int64_t at = 1; at < length; ++at) {
          changes += values[static_cast<std::size_t>(line * line_step + at * step)] !=
                             values[static_cast<std::size_t>(line * line_step + (at - 1) * step)]
                         ? 1
                         : 0;
        }
        if (changes > 1) return true;
      }
      return false;
    };
    return has_gaps(columns, rows, 1, columns) && !has_gaps(rows, columns, columns, 1);
  }

  AxesSetting axes_setting() const {
    AxesSetting setting;
    setting.axes = input_.axes;
    setting.experts = experts_;
    setting.top_k = top_k_;
    setting.layers = given_layers_;
    setting.all_layers = facts_.layers;
    setting.moe_layers = facts_.moe_layers.size();
    setting.is_plain = kind_ == RoutingKind::probabilities;
    return setting;
  }

  // Layers.

  /// Several files of one layer each are batches of it. A file for each layer looks alike.
  void check_batches(std::size_t batches, std::size_t layers) {
    if (batches < 2 || layers != 1) return;
    const bool is_layer_each = facts_.layers && facts_.moe_layers.size() == batches;
    if (is_layer_each && given_layers_.empty())
      throw UserError(
          main_->option,
          fmt::format("has {} files or arrays of one layer each, and --model has {} layers with a router: a "
                      "file for each layer? Needs one file with an entry for each layer, for example "
                      "np.savez('all.npz', **{{f'layer.{{l}}': z for l, z in ...}}); or --layers with the "
                      "number of the one layer, if the files are its batches",
                      batches, batches));
    note(fmt::format("{} files are batches of one layer: their rows follow each other", batches));
  }

  /// Equal files of several ranks hold the same tokens.
  void drop_equal_ranks(std::vector<RoutingBatch>& batches) {
    if (!input_.ranks.empty() && input_.ranks != "first" && input_.ranks != "all")
      throw UserError("--ranks", unknown_name("choice", input_.ranks, {"first", "all"}));
    if (batches.size() < 2 || input_.ranks == "all") return;
    const auto is_equal = [](const RoutingBatch& left, const RoutingBatch& right) {
      if (left.entries.size() != right.entries.size()) return false;
      for (std::size_t i = 0; i < left.entries.size(); ++i) {
        const std::optional<NpyReader>&a = left.entries[i].array, &b = right.entries[i].array;
        if (a.has_value() != b.has_value()) return false;
        if (!a) continue;
        if (a->shape() != b->shape() || a->type() != b->type()) return false;
        const std::int64_t block = std::max<std::int64_t>(1, (1 << 18) / a->row_size());
        for (std::int64_t first = 0; first < a->rows(); first += block) {
          const std::int64_t count = std::min(block, a->rows() - first);
          const Matrix one = a->read(first, count), other = b->read(first, count);
          if (!std::equal(one.data(), one.data() + one.size(), other.data(),
                          [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }))
            return false;
        }
      }
      return true;
    };
    // Only batches that begin alike are read in full.
    const auto begin_of = [](const RoutingBatch& batch) {
      std::vector<double> begin;
      for (const RoutingEntry& entry : batch.entries) {
        if (!entry.array || entry.array->rows() == 0) continue;
        const Matrix row = entry.array->read(0, 1);
        for (const double value : row.reshaped()) begin.push_back(std::isnan(value) ? 0 : value);
      }
      return begin;
    };
    std::vector<std::vector<double>> begins;
    for (const RoutingBatch& batch : batches) begins.push_back(begin_of(batch));
    for (std::size_t later = 1; later < batches.size();) {
      std::size_t same = 0;
      while (same < later && !(begins[same] == begins[later] && is_equal(batches[same], batches[later])))
        ++same;
      if (same == later) {
        ++later;
        continue;
      }
      if (input_.ranks != "first")
        throw UserError(
            main_->option,
            fmt::format("batches {} and {} are equal: ranks that saw the same tokens? Each token would "
                        "count twice; needs --ranks first to count them once, or --ranks all",
                        same, later));
      batches.erase(batches.begin() + static_cast<std::ptrdiff_t>(later));
      begins.erase(begins.begin() + static_cast<std::ptrdiff_t>(later));
      dropped_.push_back(later);
      note("a batch that equals an earlier one is left out (--ranks first)");
    }
    // What stands beside comes by file, too.
    for (SideArray* const side : {&mask_, &tokens_, &labels_, &lengths_}) {
      if (side->arrays.size() != batches.size() + dropped_.size()) continue;
      for (const std::size_t place : dropped_)
        side->arrays.erase(side->arrays.begin() + static_cast<std::ptrdiff_t>(place));
    }
  }

  /// Gives values without a shape one: (T, L, K).
  void shape_raw(RoutingBatch& batch) const {
    if (!batch.is_raw) return;
    NpyReader& array = *batch.entries.front().array;
    const std::string axes = input_.axes.empty() ? batch.axes : input_.axes;
    if (axes != "TLK" && axes != "TKL" && axes != "TK")
      array.refuse("holds raw int32 values in base64, without a shape; needs --axes TLK");
    std::int64_t width = top_k_, layers = axes == "TK" ? 1 : static_cast<std::int64_t>(given_layers_.size());
    if (layers == 0 && facts_.layers) layers = *facts_.layers;
    if (layers == 0 && width > 0 && batch.token_counts.size() == batch.lengths.size()) {
      // A record has as many rows as tokens, or one less.
      for (const std::int64_t less : {1, 0}) {
        std::set<std::int64_t> found;
        for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
          const std::int64_t rows = batch.token_counts[i] - less;
          found.insert(rows > 0 && batch.lengths[i] % (rows * width) == 0 ? batch.lengths[i] / (rows * width)
                                                                          : -1);
        }
        if (found.size() != 1 || *found.begin() < 1) continue;
        layers = *found.begin();
        break;
      }
    }
    if (width == 0 || layers == 0)
      array.refuse(
          "holds raw int32 values in base64, without a shape; needs --top-k K, and --model or --layers "
          "for the number of layers");
    std::int64_t rows = 0;
    for (std::int64_t& length : batch.lengths) {
      if (length % (layers * width) != 0)
        array.refuse(fmt::format("has a record of {} values, which {} layers of {} choices do not divide",
                                 length, layers, width));
      length /= layers * width;
      rows += length;
    }
    if (axes == "TK")
      array = array.reshaped({rows, width});
    else
      array =
          array.reshaped(axes == "TLK" ? std::vector{rows, layers, width} : std::vector{rows, width, layers});
  }

  static bool is_placeholder(const RoutingEntry& entry) {
    return !entry.array || (entry.array->rows() * entry.array->row_size() == 1);
  }

  /// The numbers of `count` layers. `knows_layers_` receives whether something tells them.
  std::vector<int> layer_numbers(const std::string& option, std::size_t count, bool is_single,
                                 const std::vector<std::optional<int>>& numbers, bool is_numbered) {
    knows_layers_ = true;
    std::vector<int> in_order(count), named;
    std::iota(in_order.begin(), in_order.end(), 0);
    for (const std::optional<int>& number : numbers) {
      if (number) named.push_back(*number);
    }
    if (!given_layers_.empty()) {
      if (given_layers_.size() != count)
        throw UserError("--layers",
                        fmt::format("names {}, and {} has {}", counted(given_layers_.size(), "layer"), option,
                                    counted(count, "layer")));
      return given_layers_;
    }
    // Numbers in names that do not count from 0 are layers.
    if (named.size() == count && (is_numbered || named != in_order)) return named;
    if (facts_.layers && count == facts_.moe_layers.size()) {
      if (facts_.moe_layers != in_order)
        note(fmt::format("entries are the layers with a router of --model: {}",
                         fmt::join(facts_.moe_layers, ", ")));
      return facts_.moe_layers;
    }
    if (facts_.layers && count == static_cast<std::size_t>(*facts_.layers)) return in_order;
    knows_layers_ = false;
    if (facts_.layers && !is_single)
      throw UserError(option,
                      fmt::format("has {}, and the model has {} with a router among {}; needs --layers",
                                  counted(count, "layer"), facts_.moe_layers.size(), *facts_.layers));
    if (!is_single)
      note(
          "layers are named by the place of their entry, since neither --layers nor --model is given: entry "
          "0 need not be layer 0");
    else if (facts_.layers)
      note("nothing tells which layer of --model this is (--layers); it is called layer 0");
    return in_order;
  }

  LayersOf read_layers(const std::string& option, RoutingKind kind, std::vector<RoutingBatch>& batches,
                       bool is_main) {
    const char width = kind == RoutingKind::experts ? 'K' : 'E';
    LayersOf layers;
    std::vector<int> numbers;
    std::vector<bool> has_router;
    std::vector<Frame> frames;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      RoutingBatch& batch = batches[b];
      shape_raw(batch);
      AxesSetting setting = axes_setting();
      setting.width = width;
      setting.is_beside_scores = kind == RoutingKind::experts && main_->kind != RoutingKind::experts;
      setting.is_entry = batch.entries.size() > 1;
      setting.sides = side_shapes(b, batches.size());
      setting.is_side_turned = is_mask_by_sequence(b, batches.size());
      if (!setting.sides.empty()) setting.rows = setting.sides[0][0] * setting.sides[0][1];
      if (!is_main) setting.rows = frames_[std::min(b, frames_.size() - 1)].rows;
      std::vector<NpyReader> slices;
      std::vector<std::optional<NpyReader>> of_slot, index_of_slot;
      std::vector<std::optional<int>> names;
      std::optional<Frame> frame;
      for (RoutingEntry& entry : batch.entries) {
        if (batch.entries.size() > 1 && is_placeholder(entry)) {
          of_slot.emplace_back();
          index_of_slot.emplace_back();
          names.push_back(entry.number);
          continue;
        }
        if (!entry.array) throw UserError(option, "holds None alone; needs an array of one layer at least");
        const NpyReader& array = *entry.array;
        if (kind == RoutingKind::logits && is_integer(array.type()))
          array.refuse(
              fmt::format("holds {} values; logits are no integers. Bit patterns of bfloat16 need --dtype "
                          "bfloat16, ids of experts --experts",
                          type_name(array.type())));
        const std::string axes = axes_of(array, setting, batch.axes, routing_.checks);
        if (input_.axes.empty() && !batch.axes.empty() && entry.name == batch.entries.front().name && b == 0)
          note(fmt::format("axes are {}, as {} writes them", axes_text(axes), batch.producer));
        const OrderedArray own = ordered(array, axes, setting);
        if (frame && frame->rows != own.frame.rows)
          array.refuse(fmt::format("has {} rows, and '{}' has {}", own.frame.rows, batch.entries.front().name,
                                   frame->rows));
        frame = own.frame;
        std::optional<NpyReader> index;
        if (entry.index) {
          std::vector<std::int64_t> shape = own.layers.front().shape();
          shape.back() = 1;
          if (entry.index->rows() * entry.index->row_size() != own.frame.rows)
            entry.index->refuse(fmt::format("has shape {}, needs an expert for each of the {} rows",
                                            shape_text(entry.index->shape()), own.frame.rows));
          index = entry.index->reshaped(std::move(shape));
        }
        for (const NpyReader& layer : own.layers) {
          of_slot.emplace_back(layer);
          index_of_slot.push_back(index);
          names.push_back(own.is_stack ? std::nullopt : entry.number);
        }
        if (is_main && (axes == "TE" || axes == "BSE") && batch.entries.size() == 1 && batches.size() == 1)
          is_one_array_ = !lengths_.is_given() && !input_.documents.is_given() && !tokens_.is_given();
      }
      if (!frame) throw UserError(option, "has no layer with a router");
      if (b == 0) {
        const auto present =
            std::count_if(of_slot.begin(), of_slot.end(), [](const auto& slot) { return slot.has_value(); });
        if (present < std::ssize(of_slot) && present == std::ssize(given_layers_)) {
          // --layers names the entries with a router. The number of another entry is the one in its name.
          knows_layers_ = true;
          auto given = given_layers_.begin();
          for (std::size_t slot = 0; slot < of_slot.size(); ++slot)
            numbers.push_back(of_slot[slot] ? *given++ : names[slot].value_or(static_cast<int>(slot)));
        } else {
          const bool knew = knows_layers_;
          numbers = layer_numbers(option, of_slot.size(), of_slot.size() == 1, names, batch.is_numbered);
          if (!is_main) knows_layers_ = knew;
        }
        for (std::size_t slot = 0; slot < of_slot.size(); ++slot) {
          has_router.push_back(of_slot[slot].has_value());
          LayerRouting& layer = layers.emplace_back();
          layer.kind = kind;
          layer.layer = numbers[slot];
          if (slot < batch.logical.size()) layer.logical = batch.logical[slot];
          if (batch.logical.size() == 1) layer.logical = batch.logical[0];
        }
      }
      if (of_slot.size() != layers.size())
        throw UserError(option, fmt::format("batch {} has {}, and the first has {}", b,
                                            counted(of_slot.size(), "layer"), layers.size()));
      for (std::size_t slot = 0; slot < of_slot.size(); ++slot) {
        if (of_slot[slot].has_value() != has_router[slot])
          throw UserError(option,
                          fmt::format("has no router in entry {} of batch {}, and one in another", slot, b));
        if (!of_slot[slot]) continue;
        layers[slot].pieces.push_back(*of_slot[slot]);
        layers[slot].name = of_slot[slot]->name();
        if (index_of_slot[slot]) layers[slot].ids.push_back(*index_of_slot[slot]);
      }
      frames.push_back(*frame);
    }
    if (is_main) {
      frames_ = frames;
      for (std::size_t slot = 0; slot < layers.size(); ++slot) {
        if (!has_router[slot]) routing_.without_router.push_back(layers[slot].layer);
      }
    } else {
      std::int64_t own = 0, all = 0;
      for (const Frame& frame : frames) own += frame.rows;
      for (const Frame& frame : frames_) all += frame.rows;
      if (own != all)
        throw UserError(option, fmt::format("has {} rows, and {} has {}; needs the same tokens", own,
                                            main_->option, all));
    }
    std::erase_if(layers, [](const LayerRouting& layer) { return layer.pieces.empty(); });
    if (kind != RoutingKind::experts) check_width(layers);
    return layers;
  }

  void check_width(const LayersOf& layers) {
    for (const LayerRouting& layer : layers) {
      for (const NpyReader& piece : layer.pieces) {
        const std::int64_t width = piece.shape().back();
        if (width > std::numeric_limits<int>::max())
          piece.refuse(fmt::format("has shape {}, too many experts", shape_text(piece.shape())));
        if (experts_ == 0) experts_ = static_cast<int>(width);
        if (width == experts_) continue;
        const std::string from = input_.expert_count > 0 ? "--expert-count"
                                 : facts_.experts        ? "--model"
                                                         : "another layer";
        piece.refuse(
            fmt::format("has {} experts in its shape {}, and {} says {}; transposed scores need --axes ET, "
                        "zero or shared experts --expert-count {}",
                        width, shape_text(piece.shape()), from, experts_, width));
      }
    }
  }

  void put_ids_beside(LayersOf& layers, std::vector<RoutingBatch>& batches) {
    LayersOf of_ids = read_layers(ids_->option, RoutingKind::experts, batches, false);
    for (LayerRouting& layer : layers) {
      const auto own = std::find_if(of_ids.begin(), of_ids.end(),
                                    [&](const LayerRouting& other) { return other.layer == layer.layer; });
      if (own == of_ids.end())
        throw UserError(ids_->option,
                        fmt::format("has no layer {}, which {} has", layer.layer, main_->option));
      if (own->pieces.size() != layer.pieces.size())
        throw UserError(ids_->option,
                        fmt::format("has {}, and {} has {}", counted(own->pieces.size(), "batch"),
                                    main_->option, layer.pieces.size()));
      layer.ids.clear();
      for (std::size_t b = 0; b < own->pieces.size(); ++b) {
        std::vector<std::int64_t> shape = layer.pieces[b].shape();
        shape.back() = own->pieces[b].shape().back();
        if (own->pieces[b].rows() * own->pieces[b].row_size() !=
            std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()))
          own->pieces[b].refuse(
              fmt::format("has shape {}, needs {}", shape_text(own->pieces[b].shape()), shape_text(shape)));
        layer.ids.push_back(own->pieces[b].reshaped(std::move(shape)));
      }
      layer.logical = own->logical;
    }
    has_ids_beside_ = true;
  }

  // Rows.

  std::int64_t all_rows() const {
    return std::accumulate(frames_.begin(), frames_.end(), std::int64_t{0},
                           [](std::int64_t sum, const Frame& frame) { return sum + frame.rows; });
  }

  /// The values of a side array for all rows of the files, in the canonical order.
  std::vector<std::int64_t> of_rows(const SideArray& side, const std::string& what) {
    const std::int64_t rows = all_rows();
    const auto misfit = [&](const std::string& found) {
      throw UserError(side.option, fmt::format("has {}, needs one for each of the {} rows of {}", found, rows,
                                               main_->option));
    };
    if (side.arrays.empty()) misfit("names");
    std::vector<std::int64_t> all;
    if (side.arrays.size() == frames_.size() && frames_.size() > 0) {
      std::int64_t total = 0;
      for (const NpyReader& array : side.arrays) total += array.rows() * array.row_size();
      if (total == rows) {
        for (std::size_t b = 0; b < frames_.size(); ++b) append(side.arrays[b], frames_[b], what, all);
        return all;
      }
    }
    std::int64_t total = 0;
    for (const NpyReader& array : side.arrays) total += array.rows() * array.row_size();
    const NpyReader& array = side.arrays.front();
    if (side.arrays.size() == 1 && total == rows && frames_.size() > 1 &&
        array.rows() == static_cast<std::int64_t>(frames_.size())) {
      for (std::size_t b = 0; b < frames_.size(); ++b) {
        std::vector<std::int64_t> shape(array.shape().begin() + 1, array.shape().end());
        if (shape.empty()) shape = {1};
        append(array.part(static_cast<std::int64_t>(b) * array.row_size(), std::move(shape), array.name()),
               frames_[b], what, all);
      }
      return all;
    }
    for (const NpyReader& own : side.arrays) {
      const std::vector<std::int64_t> values = whole_numbers(own, what);
      all.insert(all.end(), values.begin(), values.end());
    }
    if (total == rows) return all;
    // One token more in each document than rows: the last one was not routed.
    if (!document_lengths_.empty() && total == rows + static_cast<std::int64_t>(document_lengths_.size())) {
      const bool fits_lines =
          side.lengths.empty() ||
          (side.lengths.size() == document_lengths_.size() &&
           std::equal(side.lengths.begin(), side.lengths.end(), document_lengths_.begin(),
                      [](std::int64_t own, std::int64_t rows_of) { return own == rows_of + 1; }));
      if (fits_lines) {
        std::vector<std::int64_t> kept;
        std::size_t at = 0;
        for (const std::int64_t length : document_lengths_) {
          kept.insert(kept.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(at) + length);
          at += static_cast<std::size_t>(length) + 1;
        }
        note(fmt::format(
            "{} has a token more in each document than there are rows: rows belong to the first T - 1",
            side.option));
        return kept;
      }
    }
    misfit(counted(total, "value") + fmt::format(" (shape {})", shape_text(array.shape())));
    return all;
  }

  static void append(const NpyReader& array, const Frame& frame, const std::string& what,
                     std::vector<std::int64_t>& all) {
    // An array that goes by position first, as the rows did.
    const std::vector<std::int64_t> by_position = {frame.positions, frame.sequences};
    const bool is_turned = frame.is_position_first && array.shape() == by_position &&
                           !(frame.is_side_turned && frame.positions == frame.sequences);
    if (array.rows() * array.row_size() != frame.rows)
      array.refuse(fmt::format("has shape {}, needs {} entries", shape_text(array.shape()), frame.rows));
    const std::vector<std::int64_t> values =
        whole_numbers(is_turned ? array.transposed({1, 0}) : array, what);
    all.insert(all.end(), values.begin(), values.end());
  }

  void read_rows(const std::vector<RoutingBatch>& batches) {
    const std::int64_t rows = all_rows();
    if (rows > std::numeric_limits<int>::max())
      throw UserError(main_->option,
                      fmt::format("has {} rows, needs at most {}", rows, std::numeric_limits<int>::max()));
    read_documents(batches);
    auto kept = std::make_shared<KeptRows>();
    kept->all = kept->kept = rows;
    check_equal_shapes();
    if (tokens_.is_given()) all_tokens_ = of_rows(tokens_, "ids of tokens");
    if (mask_.is_given()) {
      is_one_array_ = false;
      const std::vector<std::int64_t> mask = of_rows(mask_, "masks");
      kept->flags.resize(mask.size());
      for (std::size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] != 0 && mask[i] != 1)
          throw UserError("--mask",
                          fmt::format("holds {}; needs 1 for tokens that count and 0 for others", mask[i]));
        kept->flags[i] = static_cast<unsigned char>(mask[i]);
      }
      kept->kept = std::accumulate(mask.begin(), mask.end(), std::int64_t{0});
      if (kept->kept == 0) throw UserError("--mask", "leaves no token; needs a 1 for tokens that count");
      check_mask(*kept);
      note(fmt::format("--mask leaves out {} of {} rows", rows - kept->kept, rows));
    } else if (facts_.pad_token && !all_tokens_.empty() && !input_.mask.is_text("none")) {
      const auto pads = std::count(all_tokens_.begin(), all_tokens_.end(), *facts_.pad_token);
      if (pads > 0)
        throw UserError("--mask",
                        fmt::format("missing; --tokens hold the padding token {} in {} of {} rows. Give the "
                                    "attention mask, or --mask none to count these rows",
                                    *facts_.pad_token, pads, rows));
      note("no row holds the padding token: all rows count");
    } else {
      if (!is_one_array_ || input_.tokens.is_given() || input_.mask.is_given())
        note("no --mask: all rows count, padding too if there is any");
    }
    routing_.rows = std::move(kept);
  }

  /// Tables beside the rows go by sequence and position alike. Beside rows that go by position first, each of
  /// them may have either order, and its shape tells which.
  void check_equal_shapes() const {
    if (std::any_of(frames_.begin(), frames_.end(),
                    [](const Frame& frame) { return frame.is_position_first; }))
      return;
    for (const SideArray* const side : {&tokens_, &labels_}) {
      if (mask_.arrays.size() != side->arrays.size()) continue;
      for (std::size_t i = 0; i < mask_.arrays.size(); ++i) {
        const std::vector<std::int64_t>&own = side->arrays[i].shape(), &mask = mask_.arrays[i].shape();
        if (own.size() == 2 && mask.size() == 2 && own != mask && own[0] * own[1] == mask[0] * mask[1])
          side->arrays[i].refuse(
              fmt::format("has shape {}, and --mask has {}; needs the same order of "
                          "sequences and positions",
                          shape_text(own), shape_text(mask)));
      }
    }
  }

  /// A batch is as wide as its longest sequence, so a mask without a full sequence and with an empty one is
  /// the other way round.
  void check_mask_of_sequences(const KeptRows& kept) const {
    std::int64_t row = 0, full = 0, empty = 0;
    for (const Frame& frame : frames_) {
      for (std::int64_t s = 0; s < frame.sequences; ++s) {
        std::int64_t ones = 0;
        for (std::int64_t p = 0; p < frame.positions; ++p) ones += kept.is_kept(row++) ? 1 : 0;
        full += ones == frame.positions ? 1 : 0;
        empty += ones == 0 ? 1 : 0;
      }
      if (frame.sequences == 0) row += frame.rows;
    }
    if (full == 0 && empty > 0)
      throw UserError("--mask", fmt::format("is 0 in all of {}, and no sequence has 1 throughout: is it the "
                                            "other way round? Needs 1 for tokens that count (1 - mask)",
                                            counted(empty, "sequence")));
  }

  void check_mask(const KeptRows& kept) {
    if (all_tokens_.empty()) {
      check_mask_of_sequences(kept);
      return;
    }
    std::set<std::int64_t> inside, outside;
    bool pad_inside = false, pad_outside = false;
    for (std::size_t i = 0; i < all_tokens_.size(); ++i) {
      const bool is_kept = kept.flags[i] != 0;
      const bool is_pad = facts_.pad_token && all_tokens_[i] == *facts_.pad_token;
      (is_kept ? pad_inside : pad_outside) = (is_kept ? pad_inside : pad_outside) || is_pad;
      std::set<std::int64_t>& seen = is_kept ? inside : outside;
      if (seen.size() < 3) seen.insert(all_tokens_[i]);
    }
    // The token of padding may be another one than --model names.
    const bool is_turned = facts_.pad_token ? pad_inside && !pad_outside && !outside.empty() &&
                                                  (inside.size() == 1 || outside.size() > 1)
                                            : inside.size() == 1 && outside.size() > 1;
    if (!is_turned && pad_inside && !pad_outside && outside.size() == 1)
      note(fmt::format("rows that the mask leaves out hold the token {}, and pad_token_id of --model is {}",
                       *outside.begin(), *facts_.pad_token));
    if (is_turned)
      throw UserError("--mask",
                      "is 1 where the tokens are padding and 0 where they are not; needs 1 for tokens that "
                      "count (1 - mask)");
  }

  void read_documents(const std::vector<RoutingBatch>& batches) {
    std::vector<std::int64_t> line_lengths;
    for (const RoutingBatch& batch : batches)
      line_lengths.insert(line_lengths.end(), batch.lengths.begin(), batch.lengths.end());
    const std::int64_t rows = all_rows();
    const auto total = [](const std::vector<std::int64_t>& lengths) {
      return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    };
    if (lengths_.is_given()) {
      for (const NpyReader& array : lengths_.arrays) {
        const std::vector<std::int64_t> own = whole_numbers(array, "lengths");
        document_lengths_.insert(document_lengths_.end(), own.begin(), own.end());
      }
      if (total(document_lengths_) != rows || std::any_of(document_lengths_.begin(), document_lengths_.end(),
                                                          [](std::int64_t length) { return length < 0; }))
        throw UserError("--lengths",
                        fmt::format("sum to {}, and there are {} rows", total(document_lengths_), rows));
      note(fmt::format("documents are the {} of --lengths", document_lengths_.size()));
    } else if (!line_lengths.empty() && total(line_lengths) == rows) {
      document_lengths_ = line_lengths;
      note(fmt::format(
          "documents are the {} lines of the file; lines of a packed stream are windows, not documents",
          line_lengths.size()));
    }
    if (input_.documents.is_text("rows")) {
      document_lengths_.clear();
      for (const Frame& frame : frames_) {
        if (frame.sequences == 0)
          throw UserError("--documents",
                          "rows: the rows of a batch are unknown; needs --axes with B and S, or a mask "
                          "or tokens of shape (B, S)");
        document_lengths_.insert(document_lengths_.end(), static_cast<std::size_t>(frame.sequences),
                                 frame.positions);
      }
      note(fmt::format("documents are the {} rows of the batch", document_lengths_.size()));
    } else if (documents_.is_given()) {
      has_document_ids_ = true;
    }
  }

  std::vector<int> kept_only(const std::vector<int>& all) const {
    if (routing_.rows->flags.empty()) return all;
    std::vector<int> kept;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (routing_.rows->is_kept(static_cast<std::int64_t>(i))) kept.push_back(all[i]);
    }
    return kept;
  }

  // Values of the layers.

  void finish_layers(LayersOf& layers, RoutingKind kind) {
    if (kind == RoutingKind::experts) {
      finish_ids(layers, main_->option, true);
      routing_.experts = experts_;
      routing_.layers = std::move(layers);
      return;
    }
    finish_values(layers, main_->option, kind, true);
    routing_.experts = experts_;
    routing_.layers = std::move(layers);
    note_layers_without_router();
  }

  /// Layers that have values here, and no router by --model: their numbers may be wrong.
  void note_layers_without_router() {
    if (!facts_.layers || facts_.moe_layers.empty() || !knows_layers_) return;
    std::vector<int> dense;
    for (const LayerRouting& layer : routing_.layers) {
      if (std::find(facts_.moe_layers.begin(), facts_.moe_layers.end(), layer.layer) ==
          facts_.moe_layers.end())
        dense.push_back(layer.layer);
    }
    if (!dense.empty())
      note(
          fmt::format("{} {} has values here, and no router by --model: are the numbers of the layers right "
                      "(--layers)?",
                      dense.size() == 1 ? "layer" : "each of the layers", fmt::join(dense, ", ")));
  }

  /// Reads K choices of ids, and finds layers without a router and rows that were not routed.
  void finish_ids(LayersOf& layers, const std::string& option, bool is_main) {
    if (experts_ == 0)
      throw UserError(
          "--expert-count",
          "missing; ids do not tell the number of experts (the largest id need not be the last expert). "
          "Needs --expert-count E or --model config.json");
    std::vector<IdScan> scans;
    for (LayerRouting& layer : layers) {
      layer.rule.experts = experts_;
      layer.rows = routing_.rows;
      scans.push_back(scan_ids(layer, layer.pieces));
    }
    std::size_t left = 0;
    std::vector<int> dense;
    bool all_zero = false;
    for (std::size_t at = 0; at < layers.size(); ++at) {
      // Few tokens may all go to expert 0; no token goes there twice.
      const bool is_zero = scans[at].all_zero && !scans[at].all_absent && experts_ > 1 &&
                           (layers[at].pieces.front().shape().back() > 1 || scans[at].rows > kManyRows);
      if (!is_zero && !scans[at].all_absent) continue;
      all_zero = all_zero || is_zero;
      dense.push_back(layers[at].layer);
    }
    if (dense.size() == layers.size())
      throw UserError(option, fmt::format("holds {} in every layer: the experts were not recorded",
                                          all_zero ? "zeros alone" : "-1 alone"));
    std::int64_t width = 0;
    for (std::size_t at = 0; at < layers.size(); ++at) {
      if (std::find(dense.begin(), dense.end(), layers[at].layer) != dense.end()) continue;
      if (scans[at].repeated > 0)
        layers[at].pieces.front().refuse(fmt::format(
            "names an expert twice in {} of {} rows (layer {}); loads would count it twice. Are the axes "
            "right, and is "
            "it ids of experts?{}",
            scans[at].repeated, scans[at].rows, layers[at].layer,
            layers[at].pieces.front().shape().back() == experts_ ? " One-hot masks need --gates" : ""));
      width = std::max(width, scans[at].used_columns);
    }
    if (top_k_ > 0 && top_k_ < width)
      throw UserError(input_.top_k > 0 ? "--top-k" : input_.model_place,
                      fmt::format("says {}, and {} names up to {} experts in a row", top_k_, option, width));
    const std::int64_t columns = layers.front().pieces.front().shape().back();
    if (is_main && top_k_ > columns)
      throw UserError(
          input_.top_k > 0 ? "--top-k" : input_.model_place,
          fmt::format("says {}, and {} has {} in a row", top_k_, option, counted(columns, "choice")));
    const int k = std::max(static_cast<int>(width), top_k_);
    std::vector<unsigned char> absent;
    for (std::size_t at = 0; at < layers.size(); ++at) {
      if (std::find(dense.begin(), dense.end(), layers[at].layer) != dense.end()) {
        if (is_main) routing_.without_router.push_back(layers[at].layer);
        continue;
      }
      layers[at].rule.top_k = k;
      layers[at].is_ordered = input_.by_score || k == 1;
      if (absent.empty()) {
        absent = scans[at].is_absent;
      } else {
        for (std::size_t i = 0; i < absent.size(); ++i) absent[i] = absent[i] & scans[at].is_absent[i];
      }
      if (input_.by_score && k > 1 && scans[at].is_ascending && scans[at].rows > 20)
        layers[at].pieces.front().refuse(
            "has ids in the order of their numbers in every row, so they do not come by "
            "score; leave --by-score out");
      if (left != at) layers[left] = std::move(layers[at]);
      ++left;
    }
    layers.resize(left);
    if (!is_main) return;
    if (!dense.empty())
      note(fmt::format("{} {} no router: every id is {}", dense.size() == 1 ? "layer" : "layers",
                       fmt::format("{} {}", fmt::join(dense, ", "), dense.size() == 1 ? "has" : "have"),
                       all_zero ? "0" : "-1"));
    const auto not_routed = std::count(absent.begin(), absent.end(), 1);
    if (not_routed > 0) {
      auto kept = std::make_shared<KeptRows>(*routing_.rows);
      if (kept->flags.empty()) kept->flags.assign(static_cast<std::size_t>(kept->all), 1);
      for (std::size_t i = 0; i < absent.size(); ++i) {
        if (absent[i]) kept->flags[i] = 0;
      }
      kept->kept -= not_routed;
      routing_.rows = std::move(kept);
      for (LayerRouting& layer : layers) layer.rows = routing_.rows;
      note(fmt::format(
          "{} of {} rows are -1 in every layer (cached prefixes?) and are left out; documents that share "
          "a prefix are not independent",
          not_routed, not_routed + routing_.rows->kept));
    }
    if (!input_.by_score && k > 1)
      note(
          "ids need not come by score: metrics of the first choice are left out (--by-score tells that they "
          "do)");
  }

  void finish_values(LayersOf& layers, const std::string& option, RoutingKind kind, bool is_main) {
    const SideArray bias =
        is_main && !input_.selection_bias.is_text("none")
            ? side_array("--selection-bias", input_.selection_bias,
                         {"e_score_correction_bias", "selection_bias", "expert_bias", "bias"})
            : SideArray{};
    std::vector<ValueScan> scans;
    for (LayerRouting& layer : layers) {
      layer.rows = routing_.rows;
      scans.push_back(scan_values(layer, experts_));
    }
    const bool is_single = layers.size() == 1;
    std::vector<bool> is_dense(layers.size(), false);
    const bool has_values = std::any_of(
        scans.begin(), scans.end(), [](const ValueScan& scan) { return !scan.all_nan && !scan.all_zero; });
    for (std::size_t at = 0; at < layers.size(); ++at) {
      const ValueScan& scan = scans[at];
      const NpyReader& piece = layers[at].pieces.front();
      if (scan.all_nan && !is_single) {
        is_dense[at] = true;
        if (is_main) {
          routing_.without_router.push_back(layers[at].layer);
          note(fmt::format("layer {} has no router: every value is NaN", layers[at].layer));
        }
        continue;
      }
      if (scan.all_zero && !is_single && experts_ > 1 && has_values) {
        is_dense[at] = true;
        if (is_main) {
          routing_.without_router.push_back(layers[at].layer);
          note(fmt::format("layer {} has no router: every value is 0", layers[at].layer));
        }
        continue;
      }
      if (!scan.nan_place.empty())
        piece.refuse(fmt::format("holds nan in {}; needs {}", scan.nan_place,
                                 kind == RoutingKind::logits ? "finite numbers or -inf" : "finite numbers"));
      if (kind == RoutingKind::gates && scan.has_negative)
        piece.refuse(
            "holds finite numbers below 0: logits? Use --logits; gates are 0 for experts that are not "
            "chosen");
      if (kind == RoutingKind::gates && input_.top_k == 0 && experts_ > 1 && scan.is_constant_count &&
          scan.above_zero == experts_)
        piece.refuse(
            "has no zero in any row: probabilities? Use --probs, or --scores after a sigmoid; "
            "--top-k says that every expert is chosen");
      if (kind == RoutingKind::logits && input_.score.empty() && scan.all_whole && scan.rows > kManyRows &&
          scan.largest >= experts_)
        piece.refuse(
            fmt::format("holds only whole numbers from 0 to {} in {}: ids of experts? Use "
                        "--experts; --score says that they are logits",
                        scan.largest, counted(experts_, "column")));
      if (kind == RoutingKind::scores && experts_ > 1 && scan.in_unit && scan.sums_to_one &&
          scan.rows > kManyRows)
        piece.refuse(
            "sums to 1 in every row: probabilities? Use --probs; scores after a sigmoid need not sum "
            "to 1");
    }
    if (std::find(is_dense.begin(), is_dense.end(), false) == is_dense.end())
      throw UserError(option, "holds NaN alone in every layer: the routers were not recorded");
    // Gates: as many entries above 0 in every row, and nothing else.
    const auto looks_like_gates = [&](const ValueScan& scan) {
      return scan.is_constant_count && !scan.has_negative && scan.above_zero >= 1 &&
             scan.above_zero < experts_ && experts_ > 1;
    };
    bool all_gates = true;
    for (std::size_t at = 0; at < layers.size(); ++at)
      all_gates = all_gates && (is_dense[at] || looks_like_gates(scans[at]));
    const bool is_one_hot = std::all_of(scans.begin(), scans.end(), [](const ValueScan& scan) {
      return scan.above_zero <= 1 && scan.zero_rows == 0;
    });
    if (all_gates && kind == RoutingKind::probabilities && is_one_hot)
      all_gates = false;  // r of a hash router
    // Scaled gates are outside [0, 1]. Logits have no exact zeros at as many places in each of many rows.
    const bool has_many_rows = std::all_of(scans.begin(), scans.end(), [](const ValueScan& scan) {
      return scan.all_nan || scan.rows > kManyRows;
    });
    if (all_gates && kind == RoutingKind::logits && !is_in_unit(scans) && !has_many_rows) all_gates = false;
    // One array of r is measured as it is, gates too.
    const bool keeps_values = is_one_array_ && kind != RoutingKind::scores;
    const auto read_as_sets = [&](const std::string& found, bool keeps) {
      note(found + (keeps ? "; metrics of r use these numbers (--gates leaves them out)"
                          : "; they are read as sets, and metrics of r are left out"));
      if (!keeps) kind = RoutingKind::gates;
      return !keeps;
    };
    if (all_gates && kind != RoutingKind::gates)
      // A softmax of gates is no r.
      read_as_sets(fmt::format("{} holds gates: every row has {} above 0 and zeros elsewhere", option,
                               counted(largest_count(scans), "number")),
                   keeps_values && kind != RoutingKind::logits);
    // Logits of the chosen experts alone: -inf elsewhere, at other experts from row to row.
    const auto is_chosen_alone = [&](const ValueScan& scan) {
      return scan.is_constant_open && scan.open >= 1 && (top_k_ == 0 || scan.open == top_k_) &&
             scan.ever_open_count > scan.open;
    };
    bool all_chosen = kind == RoutingKind::logits;
    for (std::size_t at = 0; at < layers.size(); ++at)
      all_chosen = all_chosen && (is_dense[at] || is_chosen_alone(scans[at]));
    const auto measured = std::find(is_dense.begin(), is_dense.end(), false) - is_dense.begin();
    const int chosen_count = static_cast<int>(scans[static_cast<std::size_t>(measured)].open);
    if (all_chosen) {
      all_chosen =
          read_as_sets(fmt::format("{} is -inf except for {} of each row: logits of the chosen experts alone",
                                   option, counted(chosen_count, "number")),
                       keeps_values);
      for (LayerRouting& layer : layers) layer.is_closed_by_infinity = all_chosen;
    }
    for (std::size_t at = 0; at < layers.size(); ++at) {
      if (is_dense[at]) continue;
      const ValueScan& scan = scans[at];
      const NpyReader& piece = layers[at].pieces.front();
      if (kind != RoutingKind::gates && experts_ > 1 && scan.in_unit && scan.others_sum_to_one &&
          scan.zero_rows > 0 && scan.uniform_rows < scan.rows)
        piece.refuse(
            fmt::format("has {} of {} rows of zeros, and the others sum to 1: probabilities with padding? "
                        "Use {}, and --mask to leave rows out",
                        scan.zero_rows, scan.rows, is_main ? "--probs" : "--previous-probs"));
      if (kind == RoutingKind::logits && experts_ > 1 && scan.in_unit && scan.sums_to_one &&
          scan.uniform_rows < scan.rows)
        piece.refuse(
            fmt::format("sums to 1 in every row, and all entries are in [0, 1]: probabilities? Use {}; a "
                        "second softmax would change every entropy",
                        is_main ? "--probs" : "--previous-probs"));
      if (kind == RoutingKind::logits && input_.score.empty() && scan.in_unit && scan.rows > kManyRows &&
          experts_ > 1 && scan.uniform_rows < scan.rows) {
        if (!keeps_values || !is_single)
          piece.refuse(
              "has all entries in [0, 1]: scores after a sigmoid? Use --scores; --score says that they are "
              "logits");
        note(fmt::format("{}: all logits are in [0, 1]; scores after a sigmoid would need --scores", option));
      }
      if (kind == RoutingKind::scores && !scan.in_unit)
        piece.refuse(
            "holds numbers outside [0, 1]; scores are after the sigmoid. Use --logits with --score sigmoid");
      if (kind == RoutingKind::probabilities && scan.in_unit && !scan.sums_to_one && scan.rows > 0 &&
          scan.largest_error > 0.05 && scan.rows > 1)
        suspects_sigmoid_ = true;
    }
    if (is_main && !all_gates &&
        (kind == RoutingKind::scores ||
         (kind == RoutingKind::logits && score_ == SelectionRule::Score::sigmoid) ||
         (kind == RoutingKind::logits && facts_.has_selection_bias)) &&
        (facts_.has_selection_bias || !facts_.knows_selection_bias) && !input_.selection_bias.is_given() &&
        !has_ids_beside_)
      throw UserError("--selection-bias",
                      "missing; routers of this kind select by score + bias, and the bias is not in "
                      "the scores. Needs FILE:ARRAY, --selection-bias none, or --experts with the ids");
    int k = top_k_;
    const bool is_r = kind == RoutingKind::probabilities || kind == RoutingKind::logits;
    if (kind == RoutingKind::gates) {
      const int used = all_chosen ? chosen_count : largest_count(scans);
      if (k > 0 && used > k)
        throw UserError(input_.top_k > 0 ? "--top-k" : input_.model_place,
                        fmt::format("says {}, and {} has rows with {} entries above 0", k, option, used));
      if (k == 0) {
        k = used;
        note(fmt::format("{} above 0 in a row: K = {}", counted(used, "number"), used));
      }
      std::int64_t unserved = 0, all = 0;
      for (const ValueScan& scan : scans) {
        unserved += all_chosen ? 0 : scan.zero_rows;
        all += scan.rows;
      }
      if (unserved > 0)
        note(fmt::format("{} of {} rows have no expert (dropped tokens): unserved, counted in unserved_share",
                         unserved, all));
    } else if (k == 0 && has_ids(layers)) {
      k = static_cast<int>(layers.front().ids.front().shape().back());
    } else if (k == 0) {
      if ((!is_single || !is_r) && experts_ > 1)
        throw UserError("--top-k",
                        "missing; needs the number of experts that a token goes to, or --model config.json");
      k = 1;
      if (experts_ > 1 && is_main) note("K = 1 is assumed: loads count first choices (--top-k)");
    }
    if (k > experts_)
      throw UserError("--top-k",
                      fmt::format("got {}, needs at most {}, the experts of {}", k, experts_, option));
    if (groups_ > 1 && experts_ % groups_ != 0)
      throw UserError("--groups", fmt::format("{} groups do not divide {} experts", groups_, experts_));
    std::size_t left = 0;
    for (std::size_t at = 0; at < layers.size(); ++at) {
      if (is_dense[at]) continue;
      LayerRouting& layer = layers[at];
      const ValueScan& scan = scans[at];
      layer.kind = kind;
      layer.rule = {
          score_,  experts_,     k,
          groups_, kept_groups_, groups_ > 1 && !facts_.has_selection_bias && input_.groups.empty()};
      if (kind != RoutingKind::logits) layer.rule.score = SelectionRule::Score::softmax;
      if (!is_main && score_ != SelectionRule::Score::sigmoid)
        layer.rule.score = SelectionRule::Score::softmax;
      // One array of r is measured as it is, where rounding alone keeps its sums from 1.
      // Rows of float32 softmaxes of some thousand experts sum to one within 1e-4; the rest is for numbers
      // that were computed in half precision. Sums of bfloat16 numbers were measured to be off by at most
      // 0.003 for 8 to 512 experts.
      constexpr double kRoundingError = 1e-3, kLowPrecisionError = 4e-3;
      const double tolerance = scan.is_low_precision ? kLowPrecisionError : kRoundingError;
      layer.is_renormalised = kind == RoutingKind::probabilities &&
                              (!is_one_array_ || scan.largest_error > kRoundingError) &&
                              scan.largest_error <= tolerance;
      if (layer.is_renormalised) layer.sum_tolerance = tolerance;
      layer.is_finite = scan.is_finite;
      if (layer.is_renormalised && is_main && scan.largest_error > kRoundingError)
        note(fmt::format(
            "layer {}: probabilities of low precision, sums are off by up to {:.2g}; rows are divided by "
            "their sums",
            layer.layer, scan.largest_error));
      if (kind == RoutingKind::probabilities && suspects_sigmoid_ && !scan.sums_to_one && scan.in_unit)
        refuse_sums(layer, scan);
      if (is_main && kind == RoutingKind::logits && scan.ever_open_count > 0 && !scan.is_finite)
        note(scan.is_constant_open
                 ? fmt::format(
                       "layer {}: logits of {} of {} experts in each row, -inf elsewhere; r is over these",
                       layer.layer, scan.open, experts_)
                 : fmt::format("layer {}: some logits are -inf; r is over the other experts of the row",
                               layer.layer));
      if (scan.uniform_rows > 0 && experts_ > 1 && kind != RoutingKind::gates && is_main)
        note(fmt::format(
            "layer {}: {} of {} rows are uniform. All experts are tied there, and the first ones count as "
            "chosen",
            layer.layer, scan.uniform_rows, scan.rows));
      if (is_main && routing_.rows->all < experts_ && input_.axes.empty() && input_.expert_count == 0 &&
          !facts_.experts)
        note(fmt::format("{} has {} and {} experts: for the axes (experts, tokens) give --axes ET", option,
                         counted(static_cast<std::size_t>(routing_.rows->all), "row"), experts_));
      if (bias.is_given()) set_bias(layer, at, layers.size(), bias);
      if (has_ids(layers) && is_main) check_ids_beside(layer);
      if (left != at) layers[left] = std::move(layers[at]);
      ++left;
    }
    layers.resize(left);
    if (is_main && kind == RoutingKind::logits && facts_.score == "sigmoid" && input_.score.empty())
      note("scores are the sigmoid of the logits, by --model; r = s / sum of s");
    if (is_main && kind == RoutingKind::logits && facts_.experts && facts_.is_assumed && input_.score.empty())
      note(
          fmt::format("scores are the softmax of the logits, and selection has no bias: assumed, since the "
                      "model type '{}' of --model is not known (--score, --selection-bias)",
                      facts_.type));
    if (is_main && kind == RoutingKind::logits && score_ == SelectionRule::Score::selected)
      note(fmt::format("r is a softmax over the K chosen experts alone, by {}; the others have r = 0",
                       input_.score.empty() ? "--model" : "--score"));
    if (is_main && groups_ > 1)
      note(fmt::format("experts are selected within the {} best of {} groups, ranked by {}", kept_groups_,
                       groups_,
                       !facts_.has_selection_bias && input_.groups.empty() ? "their largest"
                                                                           : "the sum of their two largest"));
  }

  static bool is_in_unit(const std::vector<ValueScan>& scans) {
    return std::all_of(scans.begin(), scans.end(),
                       [](const ValueScan& scan) { return scan.in_unit || scan.all_nan; });
  }
  static int largest_count(const std::vector<ValueScan>& scans) {
    std::int64_t most = 1;
    for (const ValueScan& scan : scans) most = std::max(most, scan.most_above_zero);
    return static_cast<int>(most);
  }
  static bool has_ids(const LayersOf& layers) {
    return std::any_of(layers.begin(), layers.end(),
                       [](const LayerRouting& layer) { return !layer.ids.empty(); });
  }

  void refuse_sums(const LayerRouting& layer, const ValueScan& scan) const {
    // One row off is an error of that row, which reading names. All rows off are another kind of score.
    std::int64_t off = 0;
    LayerRouting::visit_blocks(
        layer.pieces, [&](const NpyReader& piece, std::int64_t first, std::int64_t count, std::int64_t row) {
          Matrix values = piece.read(first, count);
          values.resize(values.size() / experts_, experts_);
          for (Eigen::Index i = 0; i < values.rows(); ++i)
            off += routing_.rows->is_kept(row + i) && std::abs(values.row(i).sum() - 1) > 4e-3 ? 1 : 0;
        });
    if (2 * off > scan.rows)
      layer.pieces.front().refuse(
          fmt::format("has entries in [0, 1], and {} of {} rows do not sum to 1: scores after a sigmoid? Use "
                      "--scores with "
                      "--selection-bias",
                      off, scan.rows));
  }

  void set_bias(LayerRouting& layer, std::size_t at, std::size_t count, const SideArray& bias) const {
    const NpyReader* found = nullptr;
    // Numbers that count from 0 and are as many as the layers are places, as in the names of scores. Others
    // are layers.
    std::vector<int> numbers;
    for (const std::optional<int>& number : bias.numbers) {
      if (number) numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    bool are_places = bias.arrays.size() == count;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      are_places = are_places && numbers[i] == static_cast<int>(i) && numbers.size() == count;
    for (std::size_t i = 0; i < bias.arrays.size() && !numbers.empty(); ++i) {
      const int wanted = are_places ? static_cast<int>(at) : layer.layer;
      if (bias.numbers[i] && *bias.numbers[i] == wanted) found = &bias.arrays[i];
    }
    const auto rows_of = [](const NpyReader& array) {
      return array.shape().size() == 2 ? array.rows() : std::int64_t{1};
    };
    if (!found && numbers.empty() && are_places && rows_of(bias.arrays[at]) == 1) found = &bias.arrays[at];
    std::int64_t row = 0;
    if (!found && bias.arrays.size() == 1) {
      found = &bias.arrays.front();
      const std::int64_t rows = rows_of(*found);
      if (rows == static_cast<std::int64_t>(count))
        row = static_cast<std::int64_t>(at);
      else if (facts_.layers && rows == *facts_.layers && knows_layers_)
        row = layer.layer;
      else if (rows > 1)
        found->refuse(fmt::format(
            "has shape {}, needs a row for each of {}{}", shape_text(found->shape()), counted(count, "layer"),
            !facts_.layers  ? ""
            : knows_layers_ ? fmt::format(", or for each of the {} layers of --model", *facts_.layers)
                            : ", or --layers to tell which layer of --model it is of"));
    }
    if (!found) throw UserError("--selection-bias", fmt::format("has no array of layer {}", layer.layer));
    const bool is_table = found->shape().size() == 2;
    if ((is_table ? found->row_size() : found->rows()) != experts_ ||
        (count > 1 && !is_table && bias.arrays.size() == 1))
      found->refuse(fmt::format("has shape {}, needs ({},) for each of {}", shape_text(found->shape()),
                                experts_, counted(count, "layer")));
    const Matrix values = is_table ? found->read_finite(row, 1) : found->read_finite(0, found->rows());
    layer.bias = values.reshaped<Eigen::RowMajor>();
  }

  /// Ids beside scores win. With one choice, an id 0 where another expert is the likeliest is a dropped
  /// token.
  void check_ids_beside(LayerRouting& layer) {
    if (layer.ids.empty()) return;
    const std::vector<NpyReader> ids = layer.ids;
    layer.is_ordered = input_.by_score || layer.rule.top_k == 1;
    const IdScan scan = scan_ids(layer, ids);
    if (scan.repeated > 0)
      ids.front().refuse(fmt::format("names an expert twice in {} of {} rows", scan.repeated, scan.rows));
    if (scan.used_columns > layer.rule.top_k)
      ids.front().refuse(
          fmt::format("names {} experts in a row, and K is {}", scan.used_columns, layer.rule.top_k));
    if (layer.rule.top_k > 1) return;
    // What the scores choose, for all rows of the files: capacities count padding, too.
    LayerRouting by_score = layer;
    by_score.ids.clear();
    by_score.is_finite = false;
    auto everywhere = std::make_shared<KeptRows>();
    everywhere->all = everywhere->kept = routing_.rows->all;
    by_score.rows = everywhere;
    const std::vector<int> scored = by_score.sets();
    std::vector<int> named;
    LayerRouting::visit_blocks(
        ids, [&](const NpyReader& piece, std::int64_t first, std::int64_t count, std::int64_t row) {
          const std::vector<int> own = by_score.read_ids(piece, first, count, row);
          named.insert(named.end(), own.begin(), own.end());
        });
    std::int64_t zeros = 0, others = 0;
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (named[i] == scored[i]) continue;
      ++(named[i] == 0 ? zeros : others);
    }
    if (zeros == 0) return;
    // Ties and rounding give other ids, too. They are few beside the tokens of full experts, or all is left.
    constexpr std::int64_t kFew = 20;
    if (kFew * others > zeros) {
      note(fmt::format(
          "layer {}: {} of {} ids are not the likeliest expert, {} of them are 0. So none is taken "
          "for a dropped token",
          layer.layer, zeros + others, named.size(), zeros));
      return;
    }
    const auto is_dropped = [&](std::size_t i) { return named[i] == 0 && scored[i] != 0; };
    layer.unserved.assign(named.size(), 0);
    // Of each sequence, a full expert tells the capacity; the tokens of expert 0 beyond it are dropped, too.
    std::set<std::int64_t> capacities;
    std::vector<std::pair<std::size_t, std::size_t>> sequences;
    std::size_t at = 0;
    for (const Frame& frame : frames_) {
      const std::size_t length = static_cast<std::size_t>(frame.sequences > 0 ? frame.positions : frame.rows);
      for (std::size_t begin = 0; begin < static_cast<std::size_t>(frame.rows); begin += length)
        sequences.emplace_back(at + begin, at + begin + length);
      at += static_cast<std::size_t>(frame.rows);
    }
    for (const auto& [begin, end] : sequences) {
      std::map<int, std::pair<std::int64_t, bool>> of_expert;
      for (std::size_t i = begin; i < end; ++i) {
        auto& [served, drops] = of_expert[is_dropped(i) ? scored[i] : named[i]];
        if (is_dropped(i))
          drops = true;
        else
          ++served;
      }
      for (const auto& [expert, own] : of_expert) {
        if (own.second) capacities.insert(own.first);
      }
    }
    std::int64_t dropped = 0;
    for (const auto& [begin, end] : sequences) {
      std::int64_t served = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const bool is_over = scored[i] == 0 && capacities.size() == 1 && ++served > *capacities.begin();
        layer.unserved[i] = is_dropped(i) || is_over ? 1 : 0;
        dropped += layer.unserved[i] != 0 && routing_.rows->is_kept(static_cast<std::int64_t>(i)) ? 1 : 0;
      }
    }
    note(fmt::format(
        "layer {}: index 0 where another expert is the likeliest is a dropped token; {} rows are "
        "unserved{}{}",
        layer.layer, dropped,
        others > 0 ? fmt::format(". {} other ids are not the likeliest expert, and count as they are", others)
                   : "",
        capacities.size() == 1
            ? fmt::format(". Full experts serve {} tokens of a sequence, so expert 0 serves no more",
                          *capacities.begin())
            : "; which tokens of expert 0 were dropped, the file does not tell"));
  }

  // An earlier snapshot.

  void read_earlier() {
    const KindTraits* earlier = nullptr;
    for (const KindTraits& traits : kEarlierKinds) {
      if (!(input_.*traits.source).is_given()) continue;
      if (earlier)
        throw UserError(traits.option,
                        fmt::format("given, but so is {}; needs one of the two", earlier->option));
      earlier = &traits;
    }
    if (!earlier) return;
    RoutingKind kind = earlier->kind;
    std::vector<std::string> notes;
    std::vector<RoutingBatch> batches =
        routing_batches(earlier->option, input_.*earlier->source, kind, stored_as_, experts_, notes);
    check_same_tokens(earlier->option, input_.*earlier->source);
    if (is_one_array_ && kind != RoutingKind::experts && batches.size() == 1 &&
        batches[0].entries.size() == 1 && batches[0].entries[0].array && input_.axes.empty()) {
      check_same_shape(*batches[0].entries[0].array, routing_.layers.front().pieces.front());
    }
    const std::vector<std::string> before = routing_.checks;
    LayersOf layers;
    if (is_one_array_ && kind == RoutingKind::experts && batches.size() == 1 &&
        batches[0].entries.size() == 1)
      layers = assignments_of_one(*batches[0].entries[0].array);
    else
      layers = read_layers(earlier->option, kind, batches, false);
    const bool has_bias = std::any_of(routing_.layers.begin(), routing_.layers.end(),
                                      [](const LayerRouting& layer) { return layer.bias.size() > 0; });
    if (kind != RoutingKind::experts && has_bias)
      throw UserError(
          earlier->option,
          "holds scores, and these routers select by score + bias: the earlier bias is not known. "
          "Needs --previous-assignments with the ids of the chosen experts");
    if (kind == RoutingKind::experts)
      finish_ids(layers, earlier->option, false);
    else
      finish_values(layers, earlier->option, kind, false);
    routing_.checks = before;
    if (kind != RoutingKind::experts && has_ids(routing_.layers) && !has_ids(layers))
      note(fmt::format("the experts of {} follow from its scores; for {} the given ids are used",
                       earlier->option, main_->option));
    for (LayerRouting& layer : layers) {
      layer.rows = routing_.rows;
      layer.rule.top_k = routing_.layers.front().rule.top_k;
    }
    LayersOf matched;
    for (const LayerRouting& own : routing_.layers) {
      const auto same = std::find_if(layers.begin(), layers.end(),
                                     [&](const LayerRouting& other) { return other.layer == own.layer; });
      if (same == layers.end())
        throw UserError(earlier->option,
                        fmt::format("has no layer {}, which {} has", own.layer, main_->option));
      matched.push_back(std::move(*same));
    }
    routing_.previous = std::move(matched);
  }

  static void check_same_shape(const NpyReader& previous, const NpyReader& current) {
    if (previous.shape() != current.shape())
      previous.refuse(fmt::format("has shape {}, needs {} to match {} of shape {}",
                                  shape_text(previous.shape()), shape_text(current.shape()), current.place(),
                                  shape_text(current.shape())));
  }

  /// Earlier assignments of one array have one expert to a row, or K.
  LayersOf assignments_of_one(const NpyReader& previous) const {
    const NpyReader& current = routing_.layers.front().pieces.front();
    const int k = routing_.layers.front().rule.top_k;
    const std::vector<std::int64_t> rows(current.shape().begin(), current.shape().end() - 1);
    std::vector<std::int64_t> sets = rows;
    sets.push_back(k);
    if (previous.shape() != sets && !(previous.shape() == rows && k == 1))
      previous.refuse(fmt::format("has shape {}, needs {} (--top-k {}) to match {} of shape {}",
                                  shape_text(previous.shape()), shape_text(k > 1 ? sets : rows), k,
                                  current.place(), shape_text(current.shape())));
    if (!is_integer(previous.type()))
      previous.refuse(
          fmt::format("holds {} values, needs integers (array.astype('int64'))", type_name(previous.type())));
    LayersOf layers(1);
    layers[0].kind = RoutingKind::experts;
    layers[0].layer = routing_.layers.front().layer;
    layers[0].name = previous.name();
    layers[0].pieces.push_back(previous.is_fortran() || previous.shape() == sets ? previous
                                                                                 : previous.reshaped(sets));
    return layers;
  }

  /// Two snapshots compare the same tokens, where both files hold them.
  void check_same_tokens(const std::string& option, const ArraySource& source) {
    if (all_tokens_.empty() || input_.tokens.files.empty() || source.files.empty()) return;
    ArraySource tokens;
    const std::string name = split_array_name(input_.tokens.files.front()).second;
    for (const std::filesystem::path& given : source.files) {
      const std::filesystem::path file = split_array_name(given).first;
      tokens.files.push_back(name.empty() ? file : std::filesystem::path(file.string() + ":" + name));
    }
    std::vector<std::int64_t> earlier;
    try {
      SideArray side = side_array(option, tokens, {"input_ids", "token_ids"});
      earlier = of_rows(side, "ids of tokens");
    } catch (const UserError&) {
      return;  // the earlier file does not hold them
    }
    if (earlier != all_tokens_)
      throw UserError(option,
                      "holds other tokens than --tokens; two snapshots are compared on the same tokens");
    note(fmt::format("{} holds the same tokens", option));
  }

  // Counts.

  void read_counts(std::vector<RoutingBatch>& batches) {
    std::map<int, std::vector<std::int64_t>> of_layer;
    std::int64_t empty_steps = 0, steps = 0;
    std::vector<int> numbers;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      RoutingBatch& batch = batches[b];
      std::vector<std::vector<std::int64_t>> slots;
      std::vector<std::optional<int>> names;
      for (const RoutingEntry& entry : batch.entries) {
        if (!entry.array) {
          slots.emplace_back();
          names.push_back(entry.number);
          continue;
        }
        const NpyReader& array = *entry.array;
        std::string axes = input_.axes.empty() ? batch.axes : input_.axes;
        if (axes.empty()) {
          if (array.shape().size() > 2 || array.shape().empty())
            array.refuse(fmt::format("has shape {}, which can be {}, {}; needs --axes",
                                     shape_text(array.shape()), axes_text("NLE"), axes_text("LNE")));
          axes = array.shape().size() == 1 ? "E" : "LE";
          if (axes == "LE") check_layer_sums(array);
          if (array.shape().size() == 2)
            note(fmt::format("{} has shape {}: read as LE (layers, experts)", main_->option,
                             shape_text(array.shape())));
        }
        if (batch.entries.size() > 1 && axes.size() == array.shape().size() + 1) std::erase(axes, 'L');
        if (axes.size() != array.shape().size() || axes.find('E') == std::string::npos ||
            axes.find_first_not_of("NLE") != std::string::npos)
          array.refuse(fmt::format("has shape {}, and --axes {}; counts have the axes N (steps), L, E",
                                   shape_text(array.shape()), axes));
        std::vector<std::size_t> order(axes.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const std::string_view canonical = "NLE";
        std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
          return canonical.find(axes[left]) < canonical.find(axes[right]);
        });
        std::map<char, std::int64_t> size_of;
        for (std::size_t i = 0; i < axes.size(); ++i) size_of[axes[i]] = array.shape()[i];
        const std::int64_t width = size_of['E'], layers = size_of.contains('L') ? size_of['L'] : 1,
                           all_steps = size_of.contains('N') ? size_of['N'] : 1;
        if (experts_ == 0) experts_ = static_cast<int>(width);
        if (width != experts_)
          array.refuse(fmt::format("has {} experts in its shape {}, and {} were said", width,
                                   shape_text(array.shape()), experts_));
        const std::vector<std::int64_t> values = whole_numbers(array.transposed(order), "counts");
        std::vector<std::vector<std::int64_t>> own(
            static_cast<std::size_t>(layers), std::vector<std::int64_t>(static_cast<std::size_t>(width), 0));
        for (std::int64_t step = 0; step < all_steps; ++step) {
          bool is_empty = true;
          for (std::int64_t at = 0; at < layers * width; ++at) {
            const std::int64_t count = values[static_cast<std::size_t>(step * layers * width + at)];
            if (count < 0) array.refuse(fmt::format("holds {}; counts are not negative", count));
            is_empty = is_empty && count == 0;
            own[static_cast<std::size_t>(at / width)][static_cast<std::size_t>(at % width)] += count;
          }
          ++steps;
          empty_steps += is_empty ? 1 : 0;
        }
        for (std::vector<std::int64_t>& layer : own) {
          slots.push_back(std::move(layer));
          names.push_back(axes.find('L') == std::string::npos ? entry.number : std::nullopt);
        }
      }
      if (b == 0)
        numbers = layer_numbers(main_->option, slots.size(), slots.size() == 1, names, batch.is_numbered);
      std::vector<int> own_numbers = numbers;
      if (batch.is_numbered && given_layers_.empty()) {
        own_numbers.clear();
        for (const std::optional<int>& number : names) own_numbers.push_back(number.value_or(0));
      }
      if (own_numbers.size() != slots.size())
        throw UserError(main_->option, fmt::format("file {} has {}, and the first has {}", b,
                                                   counted(slots.size(), "layer"), numbers.size()));
      for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        std::vector<std::int64_t>& sum = of_layer[own_numbers[slot]];
        sum.resize(static_cast<std::size_t>(experts_), 0);
        for (std::size_t e = 0; e < slots[slot].size(); ++e) sum[e] += slots[slot][e];
      }
    }
    if (empty_steps > 0)
      note(fmt::format("{} of {} steps are empty: they were not recorded", empty_steps, steps));
    for (auto& [number, counts] : of_layer) {
      if (std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == 0) {
        routing_.without_router.push_back(number);
        note(fmt::format("layer {} has no router: every count is 0", number));
        continue;
      }
      const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
      const auto most = std::max_element(counts.begin(), counts.end());
      if (top_k_ > 0 && *most * top_k_ > sum)
        note(fmt::format(
            "layer {}: with K = {} there are {} tokens, and expert {} counts {}. A token chooses an "
            "expert once, so K is smaller, or the counts are not of tokens",
            number, top_k_, sum / top_k_, most - counts.begin(), *most));
      routing_.counted_layers.push_back(number);
      routing_.counts.push_back(std::move(counts));
    }
    if (routing_.counts.empty()) throw UserError(main_->option, "holds zeros alone: nothing was recorded");
    if (input_.mask.is_given() || input_.tokens.is_given() || input_.labels.is_given())
      note("counts are of no single tokens: --mask, --tokens and --labels do not apply");
    routing_.experts = experts_;
    routing_.top_k = top_k_;
    if (top_k_ == 0) note("K is unknown (--top-k): counts do not tell the number of tokens");
    note(
        "counts are taken as they are: with padding and before tokens are dropped, if the program that "
        "counted did so");
    describe();
  }

  /// Every layer routes the same tokens. If columns have equal sums and rows have not, the axes are turned.
  static void check_layer_sums(const NpyReader& array) {
    const std::vector<std::int64_t> values = whole_numbers(array, "counts");
    const auto rows = static_cast<std::size_t>(array.shape()[0]),
               columns = static_cast<std::size_t>(array.shape()[1]);
    std::vector<std::int64_t> of_row(rows, 0), of_column(columns, 0);
    for (std::size_t at = 0; at < values.size(); ++at) {
      of_row[at / columns] += values[at];
      of_column[at % columns] += values[at];
    }
    const auto are_equal = [](const std::vector<std::int64_t>& sums) {
      return std::adjacent_find(sums.begin(), sums.end(), std::not_equal_to<>()) == sums.end();
    };
    if (columns > 1 && are_equal(of_column) && !are_equal(of_row))
      array.refuse(
          fmt::format("has shape {} and equal sums in every column: does it have the axes EL "
                      "(experts, layers)? Needs --axes",
                      shape_text(array.shape())));
  }

  // Labels and tokens of the kept rows.

  void read_labels_and_tokens() {
    const std::int64_t rows = all_rows();
    if (!document_lengths_.empty() || has_document_ids_) {
      std::vector<int> documents, positions;
      if (has_document_ids_) {
        std::map<std::int64_t, int> number;
        std::map<std::int64_t, int> length;
        std::map<std::int64_t, std::size_t> batch_of;
        std::set<std::int64_t> in_several;
        std::size_t batch = 0;
        std::int64_t left = frames_.empty() ? rows : frames_.front().rows;
        for (const std::int64_t id : of_rows(documents_, "documents")) {
          while (left == 0 && batch + 1 < frames_.size()) left = frames_[++batch].rows;
          --left;
          if (batch_of.try_emplace(id, batch).first->second != batch) in_several.insert(id);
          const auto [known, is_new] = number.try_emplace(id, static_cast<int>(number.size()));
          if (is_new) document_ids_.push_back(id);
          documents.push_back(known->second);
          positions.push_back(length[id]++);
        }
        document_total_ = number.size();
        if (!in_several.empty())
          note(
              fmt::format("{} of the {} documents occur in several batches, and count as one each; documents "
                          "that differ need ids that differ",
                          in_several.size(), document_total_));
      } else {
        for (std::size_t d = 0; d < document_lengths_.size(); ++d) {
          for (std::int64_t p = 0; p < document_lengths_[d]; ++p) {
            documents.push_back(static_cast<int>(d));
            positions.push_back(static_cast<int>(p));
          }
        }
        document_total_ = document_lengths_.size();
      }
      all_documents_ = documents;
      routing_.documents = kept_only(documents);
      routing_.positions = kept_only(positions);
      routing_.document_count = static_cast<int>(document_total_);
    } else if (routing_.layers.size() > 1 || !is_one_array_) {
      note("no documents: no intervals and no repeats (--documents rows, or --lengths)");
    }
    if (!all_tokens_.empty()) {
      for (std::size_t i = 0; i < all_tokens_.size(); ++i) {
        if (routing_.rows->is_kept(static_cast<std::int64_t>(i))) routing_.tokens.push_back(all_tokens_[i]);
      }
    }
    if (labels_.is_given()) read_labels(rows);
  }

  /// The place of a document's label: its id, if ids were given. They need not come in order.
  std::size_t place_of_label(std::size_t document) const {
    if (document_ids_.empty()) return document;
    const std::int64_t id = document_ids_[document];
    if (id < 0 || id >= static_cast<std::int64_t>(document_ids_.size()))
      throw UserError(
          "--labels",
          fmt::format("has a label for each of {} documents, and --documents has the id {}; needs "
                      "ids from 0 to {} for this, or a label for each row",
                      document_ids_.size(), id, document_ids_.size() - 1));
    return static_cast<std::size_t>(id);
  }

  void read_labels(std::int64_t rows) {
    // Names and numbers alike become places in a sorted list.
    std::vector<std::int64_t> values;
    if (!labels_.texts.empty()) {
      const std::set<std::string> sorted(labels_.texts.begin(), labels_.texts.end());
      routing_.label_names.assign(sorted.begin(), sorted.end());
      for (const std::string& text : labels_.texts)
        values.push_back(std::distance(sorted.begin(), sorted.find(text)));
    } else {
      for (const NpyReader& array : labels_.arrays) {
        if (!is_integer(array.type()) && is_one_array_)
          array.refuse(fmt::format("holds {} values, needs integers (array.astype('int64'))",
                                   type_name(array.type())));
      }
    }
    const auto total = [&] {
      if (!labels_.texts.empty()) return static_cast<std::int64_t>(labels_.texts.size());
      std::int64_t sum = 0;
      for (const NpyReader& array : labels_.arrays) sum += array.rows() * array.row_size();
      return sum;
    }();
    if (is_one_array_ && labels_.arrays.size() == 1 && labels_.texts.empty()) {
      read_labels_of_one(labels_.arrays.front(), rows);
      return;
    }
    std::int64_t sequences = 0;
    for (const Frame& frame : frames_) sequences += frame.sequences;
    const bool is_of_documents =
        !all_documents_.empty() && total == static_cast<std::int64_t>(document_total_);
    const bool is_of_sequences = sequences > 0 && total == sequences;
    if (total != rows && !is_of_documents && !is_of_sequences) {
      if (labels_.texts.empty())
        values = of_rows(labels_, "labels");  // says what does not fit, or drops last tokens
      if (static_cast<std::int64_t>(values.size()) != rows)
        throw UserError(
            "--labels",
            fmt::format("has {}, needs one for each of {} rows{}{}", counted(total, "label"), rows,
                        sequences > 0 ? fmt::format(", {} sequences", sequences) : "",
                        document_total_ > 0 ? fmt::format(", {} documents", document_total_) : ""));
    } else if (total == rows) {
      if (labels_.texts.empty()) values = of_rows(labels_, "labels");
    } else {
      if (labels_.texts.empty()) {
        for (const NpyReader& array : labels_.arrays) {
          const std::vector<std::int64_t> own = whole_numbers(array, "labels");
          values.insert(values.end(), own.begin(), own.end());
        }
      }
      std::vector<std::int64_t> spread;
      if (is_of_documents) {
        for (const int document : all_documents_)
          spread.push_back(values[place_of_label(static_cast<std::size_t>(document))]);
      } else {
        std::size_t sequence = 0;
        for (const Frame& frame : frames_) {
          for (std::int64_t s = 0; s < frame.sequences; ++s, ++sequence)
            spread.insert(spread.end(), static_cast<std::size_t>(frame.positions), values[sequence]);
        }
      }
      values = std::move(spread);
      note(fmt::format("a label is of all rows of its {}", is_of_documents ? "document" : "sequence"));
    }
    std::vector<std::int64_t> kept;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!routing_.rows->is_kept(static_cast<std::int64_t>(i))) continue;
      if (values[i] < 0)
        throw UserError("--labels",
                        fmt::format("holds {} in row {}, which the mask keeps; -100 marks tokens without a "
                                    "loss and is no domain. Leave these rows out by --mask",
                                    values[i], i));
      kept.push_back(values[i]);
    }
    std::vector<std::string> names = std::move(routing_.label_names);
    if (names.empty()) names = input_.label_names;
    routing_.label_names.clear();
    const std::set<std::int64_t> sorted(kept.begin(), kept.end());
    std::map<std::int64_t, int> place;
    for (const std::int64_t value : sorted) {
      const int next = static_cast<int>(place.size());
      place[value] = next;
      routing_.label_names.push_back(names.empty() ? std::to_string(value)
                                                   : names.at(static_cast<std::size_t>(value)));
    }
    for (const std::int64_t value : kept) routing_.labels.push_back(place[value]);
  }

  /// Labels of one array of r: (n), (n, s), or several labels to a row.
  void read_labels_of_one(const NpyReader& labels, std::int64_t rows) {
    const NpyReader& piece = routing_.layers.front().pieces.front();
    const std::vector<std::int64_t> of_routing(piece.shape().begin(), piece.shape().end() - 1);
    std::vector<std::int64_t> shape = labels.shape();
    const bool has_parts = of_routing.size() == 1 && shape.size() == 2 && labels.rows() == rows;
    if (!has_parts && shape != of_routing)
      labels.refuse(fmt::format("has shape {}, needs {} to match {} of shape {}", shape_text(shape),
                                shape_text(of_routing), piece.place(), shape_text(piece.shape())));
    routing_.parts = has_parts ? static_cast<int>(labels.row_size()) : 1;
    routing_.labels = moelab::read_labels(labels, 0, labels.rows(), kLabelLimit);
    std::set<int> sorted(routing_.labels.begin(), routing_.labels.end());
    if (!input_.label_names.empty()) {
      routing_.label_names = input_.label_names;
      return;
    }
    for (const int label : sorted) routing_.label_names.push_back(std::to_string(label));
  }

  void describe() {
    if (!routing_.without_router.empty() && kind_ != RoutingKind::counts && kind_ != RoutingKind::experts) {
      // Layers of ids and of NaN were named where they were found.
      std::vector<int> dense = routing_.without_router;
      std::sort(dense.begin(), dense.end());
      note(fmt::format("without a router: {} {}", dense.size() == 1 ? "layer" : "layers",
                       fmt::join(dense, ", ")));
    }
    if (facts_.layers) {
      for (int layer = 0; layer < *facts_.layers; ++layer) {
        const bool is_measured = std::any_of(routing_.layers.begin(), routing_.layers.end(),
                                             [&](const LayerRouting& own) { return own.layer == layer; }) ||
                                 std::find(routing_.counted_layers.begin(), routing_.counted_layers.end(),
                                           layer) != routing_.counted_layers.end();
        const bool has_router =
            std::find(facts_.moe_layers.begin(), facts_.moe_layers.end(), layer) != facts_.moe_layers.end();
        if (!has_router && !is_measured &&
            std::find(routing_.without_router.begin(), routing_.without_router.end(), layer) ==
                routing_.without_router.end())
          routing_.without_router.push_back(layer);
      }
    }
    std::sort(routing_.without_router.begin(), routing_.without_router.end());
    if (experts_ == 1)
      note(
          "one expert: every token goes to it. Entropies are 0, and there is no margin and no choice to "
          "measure");
  }

  const RoutingInput& input_;
  RouterDump routing_;
  ModelFacts facts_;
  const KindTraits *main_ = nullptr, *ids_ = nullptr;
  RoutingKind kind_ = RoutingKind::probabilities;
  std::optional<NpyType> stored_as_;
  int experts_ = 0, top_k_ = 0, groups_ = 1, kept_groups_ = 1;
  SelectionRule::Score score_ = SelectionRule::Score::softmax;
  std::vector<int> given_layers_;
  std::vector<std::size_t> dropped_;
  SideArray mask_, tokens_, labels_, lengths_, documents_;
  std::vector<Frame> frames_;
  std::vector<std::int64_t> document_lengths_, all_tokens_;
  std::vector<int> all_documents_;
  std::size_t document_total_ = 0;
  std::vector<std::int64_t> document_ids_;  // in the order of the documents' numbers; empty without ids
  bool is_one_array_ = false, has_ids_beside_ = false, has_document_ids_ = false, suspects_sigmoid_ = false;
  bool knows_layers_ = false;  // whether something tells the numbers of the layers
};

}  // namespace

RouterDump read_routing(const RoutingInput& input) {
  return RoutingBuilder(input).build();
}

}  // namespace moelab
