#pragma once

/// What a file or memory holds of a router, before its axes are known: batches of entries, one for each layer
/// or for a stack of layers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/dump/layer_routing.h"
#include "app/dump/routing_input.h"

namespace moelab {

/// An array of one layer, or of a stack of layers.
struct RoutingEntry {
  std::string name;
  std::optional<int> number;       ///< in the name: of an entry or of a layer
  std::optional<NpyReader> array;  ///< none: the layer has no router
  std::optional<NpyReader> index;  ///< the experts beside the scores (Switch)
};

/// The entries of one file, or of one step of a trace.
struct RoutingBatch {
  std::vector<RoutingEntry> entries;
  std::vector<std::int64_t> lengths;       ///< rows of each record of a file of lines
  std::string axes;                        ///< as the producer writes them; empty where unknown
  std::string producer;                    ///< who writes such fields, for `checks`
  bool is_numbered = false;                ///< numbers are layers
  bool is_raw = false;                     ///< values without a shape
  std::vector<std::vector<int>> logical;   ///< experts of physical ids, for each layer of a stack
  std::vector<std::int64_t> token_counts;  ///< tokens of each record, where the record holds their ids
};

/// The batches of the source, and notes on what was chosen. `kind` becomes `counts` where a table of choices
/// has no tokens. `experts` is E where it is known, 0 otherwise.
std::vector<RoutingBatch> routing_batches(const std::string& option, const ArraySource& source,
                                          RoutingKind& kind, std::optional<NpyType> stored_as,
                                          std::int64_t experts, std::vector<std::string>& checks);

/// Values beside the routing: arrays (one, or one for each batch), a column of records, or names.
struct SideArray {
  std::string option;
  std::vector<NpyReader> arrays;
  std::vector<std::optional<int>> numbers;  ///< in the arrays' names
  std::vector<std::int64_t> lengths;        ///< rows of each record
  std::vector<std::string> texts;

  bool is_given() const { return !arrays.empty() || !texts.empty(); }
};

/// `usual` are names that are looked for where the source names none.
SideArray side_array(const std::string& option, const ArraySource& source,
                     const std::vector<std::string>& usual);

/// The file of FILE[:ARRAY], and the array's name or nothing.
std::pair<std::filesystem::path, std::string> split_array_name(const std::filesystem::path& given);

/// The values of a side array as whole numbers, in C order. Throws UserError for other numbers.
std::vector<std::int64_t> whole_numbers(const NpyReader& array, const std::string& what);

}  // namespace moelab
