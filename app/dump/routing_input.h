#pragma once

/// From what a user has of a router (files or arrays, and flags) to the routing of L layers over T tokens of
/// D documents. Everything that is assumed stands in `checks`. What cannot be determined is refused.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/dump/layer_routing.h"
#include "app/scenario/json.h"
#include "sim/data/npy.h"

namespace moelab {

/// An array in memory with its name; no array where a layer has no router (None).
struct MemoryEntry {
  std::string name = {};
  std::optional<int> layer = {};
  std::optional<MemoryArray> array = {};
  std::optional<MemoryArray> index = {};  ///< the experts beside the scores (Switch)
};

/// Arrays of a user: FILE[:ARRAY] of a .npy, .npz, .safetensors, .jsonl or .csv file, or memory; none where
/// both are empty. Several files are batches. The conversions are implicit.
struct ArraySource {
  std::vector<std::filesystem::path> files = {};
  std::vector<std::vector<MemoryEntry>> batches = {};

  ArraySource() = default;
  ArraySource(std::filesystem::path given) : files({std::move(given)}) {}
  ArraySource(const MemoryArray& given) : batches({{MemoryEntry{"", {}, given}}}) {}
  bool is_given() const { return !batches.empty() || !files.empty(); }
  bool is_text(const std::string& text) const { return files.size() == 1 && files.front() == text; }
};

/// The flags of `analyze` that say what is routed.
struct RoutingInput {
  ArraySource probs, logits, scores, gates, experts,
      counts;  ///< one of them; experts may stand beside scores
  ArraySource previous_probs, previous_logits, previous_assignments;  ///< an earlier snapshot
  ArraySource mask;                      ///< 1 for the tokens that count, or "none"
  ArraySource tokens;                    ///< ids of the tokens
  ArraySource labels;                    ///< clusters or domains: of rows, of sequences or of documents
  ArraySource lengths;                   ///< rows of each document
  ArraySource documents;                 ///< "rows" (of a batch), "lines", or the document of each row
  ArraySource selection_bias;            ///< (E) of each layer, or "none"
  std::vector<std::string> label_names;  ///< of labels in memory
  std::string axes, layers, score, groups, dtype, ranks;
  Json model;  ///< the configuration; null for none
  std::string model_place = "--model";
  int expert_count = 0, top_k = 0;                     ///< 0: not given
  bool by_score = false;                               ///< ids stand in the order of scores
  std::vector<std::vector<std::int64_t>> side_shapes;  ///< (n, s) of inputs and embeddings, which settle axes
};

/// What `analyze` measures.
struct RouterDump {
  int experts = 0, top_k = 0;        ///< top_k is 0 where counts do not tell it
  bool is_one_array = false;         ///< one layer of r, (n, E) or (n, s, E), without flags that choose rows
  std::vector<LayerRouting> layers;  ///< with a router
  std::vector<LayerRouting> previous;             ///< of the same layers, or empty
  std::vector<int> without_router;                ///< numbers of dense layers
  std::vector<std::vector<std::int64_t>> counts;  ///< (layers, E) where counts alone were given
  std::vector<int> counted_layers;                ///< their numbers
  std::shared_ptr<const KeptRows> rows;
  std::vector<std::int64_t> tokens;  ///< of the kept rows, or empty
  std::vector<int> labels;           ///< of the kept rows, or empty
  int parts = 1;                     ///< labels of a row
  std::vector<std::string> label_names;
  std::vector<int> documents, positions;  ///< of the kept rows, or empty
  int document_count = 0;
  std::vector<std::string> checks;
};

/// Throws UserError at the option whose array does not fit, with what it could be and the way out.
RouterDump read_routing(const RoutingInput& input);

}  // namespace moelab
