#pragma once

/// What a disk may hold after a power cut, from the trace of what a program did to a folder.
///
/// What was flushed is there: of a file its content, of a folder its entries. Anything later may be there or
/// not: contents whole, cut or with zeros in place of their ends, each entry for itself. A rename is there or
/// not, never half. A file whose own entry was not flushed may be lost although its content was, as POSIX
/// allows and some file systems do.

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "tests/faults/call_table.h"

namespace moelab::faults {

struct Change {
  TraceHeader header;
  std::string path, to, data;
};

std::vector<Change> read_trace(const std::filesystem::path& file);

/// What of the changes that were not flushed a power cut leaves.
enum class Left { all, nothing, some };

class TracedDisk {
 public:
  /// As `root` stands, all of it flushed.
  explicit TracedDisk(const std::filesystem::path& root);
  void apply(const Change& change);
  /// Makes `root` what a power cut leaves now.
  void cut_power(Left left, Engine& engine) const;
  /// Cells whose record is in a journal's flushed content: the program may have told of them.
  std::set<std::string> acknowledged() const;

 private:
  struct Node {
    bool is_folder = false;
    std::string content, flushed_content;             ///< of a file
    std::map<std::string, int> names, flushed_names;  ///< of a folder: nodes by name
    /// Changes of `names` since the last flush. The changes of one rename stay together. −1: the name is
    /// free.
    std::vector<std::vector<std::pair<std::string, int>>> pending = {};
  };
  struct Opened {
    int node = -1;
    std::size_t position = 0;
    bool appends = false;
  };

  int load(const std::filesystem::path& path);
  int find(const std::string& path) const;  ///< −1 where nothing is
  /// The folder that holds `path`, and its name there.
  std::pair<int, std::string> place_of(const std::string& path) const;
  void set_names(int folder, std::vector<std::pair<std::string, int>> names);
  int add(Node node);
  void write_node(int node, const std::filesystem::path& path, Left left, Engine& engine) const;

  std::filesystem::path root_;
  std::vector<Node> nodes_;
  std::map<int, Opened> opened_;  ///< by descriptor
};

}  // namespace moelab::faults
