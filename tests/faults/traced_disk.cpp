#include "tests/faults/traced_disk.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "app/store/record.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::faults {
namespace {

namespace fs = std::filesystem;

/// What is left of a file's content: the flushed one, the new one, or the new one cut or zeroed from some
/// byte behind what both have in common.
std::string left_content(const std::string& flushed, const std::string& now, Left left, Engine& engine) {
  if (left == Left::all || flushed == now) return now;
  if (left == Left::nothing) return flushed;
  const auto common = std::mismatch(flushed.begin(), flushed.end(), now.begin(), now.end()).second;
  const std::size_t shared = static_cast<std::size_t>(common - now.begin());
  const std::size_t kept =
      shared + static_cast<std::size_t>(draw_index(engine, static_cast<int>(now.size() - shared) + 1));
  switch (draw_index(engine, 4)) {
    case 0:
      return flushed;
    case 1:
      return now;
    case 2:
      return now.substr(0, kept);
    default:
      return now.substr(0, kept) + std::string(now.size() - kept, '\0');
  }
}

}  // namespace

std::vector<Change> read_trace(const fs::path& file) {
  const std::string bytes = file_text(file);
  std::vector<Change> changes;
  for (std::size_t at = 0; at < bytes.size();) {
    Change change;
    if (bytes.size() - at < sizeof change.header) throw std::runtime_error("a trace that is cut");
    std::memcpy(&change.header, bytes.data() + at, sizeof change.header);
    at += sizeof change.header;
    const auto take = [&](std::uint64_t size) {
      std::string part = bytes.substr(at, size);
      at += size;
      return part;
    };
    change.path = take(change.header.first);
    change.to = take(change.header.second);
    change.data = take(change.header.size);
    changes.push_back(std::move(change));
  }
  return changes;
}

TracedDisk::TracedDisk(const fs::path& root) : root_(root) {
  load(root);
}

int TracedDisk::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

int TracedDisk::load(const fs::path& path) {
  if (!fs::is_directory(path)) {
    const std::string content = file_text(path);
    return add({false, content, content, {}, {}});
  }
  const int folder = add({true, {}, {}, {}, {}});
  std::map<std::string, int> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    names[entry.path().filename().string()] = load(entry.path());
  Node& node = nodes_[static_cast<std::size_t>(folder)];
  node.names = node.flushed_names = std::move(names);
  return folder;
}

int TracedDisk::find(const std::string& path) const {
  int node = 0;
  const fs::path below = fs::path(path).lexically_relative(root_);
  for (const fs::path& part : below) {
    if (part == "." || part.empty()) continue;
    const auto& names = nodes_[static_cast<std::size_t>(node)].names;
    const auto found = names.find(part.string());
    if (found == names.end()) return -1;
    node = found->second;
  }
  return node;
}

std::pair<int, std::string> TracedDisk::place_of(const std::string& path) const {
  const int folder = find(fs::path(path).parent_path().string());
  if (folder < 0) throw std::runtime_error("a change in a folder that is not traced: " + path);
  return {folder, fs::path(path).filename().string()};
}

void TracedDisk::set_names(int folder, std::vector<std::pair<std::string, int>> names) {
  Node& node = nodes_[static_cast<std::size_t>(folder)];
  for (const auto& [name, target] : names) {
    if (target < 0)
      node.names.erase(name);
    else
      node.names[name] = target;
  }
  node.pending.push_back(std::move(names));
}

void TracedDisk::apply(const Change& change) {
  const TraceHeader& header = change.header;
  const auto content = [&]() -> std::string& {
    return nodes_[static_cast<std::size_t>(opened_.at(header.descriptor).node)].content;
  };
  switch (header.operation) {
    case TraceHeader::open: {
      int node = find(change.path);
      if (node < 0) {
        node = add({});
        const auto [folder, name] = place_of(change.path);
        set_names(folder, {{name, node}});
      } else if ((header.flags & O_TRUNC) != 0) {
        nodes_[static_cast<std::size_t>(node)].content.clear();
      }
      opened_[header.descriptor] = {node, 0, (header.flags & O_APPEND) != 0};
      break;
    }
    case TraceHeader::write: {
      Opened& file = opened_.at(header.descriptor);
      std::size_t at = file.appends ? content().size() : file.position;
      if (header.offset >= 0)
        at = static_cast<std::size_t>(header.offset);
      else
        file.position = at + change.data.size();
      if (content().size() < at + change.data.size()) content().resize(at + change.data.size());
      content().replace(at, change.data.size(), change.data);
      break;
    }
    case TraceHeader::flush: {
      Node& node = nodes_[static_cast<std::size_t>(opened_.at(header.descriptor).node)];
      node.flushed_content = node.content;
      node.flushed_names = node.names;
      node.pending.clear();
      break;
    }
    case TraceHeader::cut:
      content().resize(static_cast<std::size_t>(header.offset));
      break;
    case TraceHeader::rename: {
      const auto [from, name] = place_of(change.path);
      const auto [to, new_name] = place_of(change.to);
      if (from != to) throw std::runtime_error("a rename between folders: " + change.path);
      set_names(to, {{name, -1}, {new_name, find(change.path)}});
      break;
    }
    case TraceHeader::folder: {
      const auto [folder, name] = place_of(change.path);
      const int made = add({true, {}, {}, {}, {}});
      set_names(folder, {{name, made}});
      break;
    }
    case TraceHeader::remove: {
      const auto [folder, name] = place_of(change.path);
      set_names(folder, {{name, -1}});
      break;
    }
  }
}

void TracedDisk::cut_power(Left left, Engine& engine) const {
  for (const fs::directory_entry& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
  write_node(0, root_, left, engine);
}

void TracedDisk::write_node(int index, const fs::path& path, Left left, Engine& engine) const {
  const Node& node = nodes_[static_cast<std::size_t>(index)];
  if (!node.is_folder) {
    std::ofstream(path, std::ios::binary) << left_content(node.flushed_content, node.content, left, engine);
    return;
  }
  fs::create_directories(path);
  std::map<std::string, int> names = node.flushed_names;
  for (const auto& change : node.pending) {
    if (left == Left::nothing || (left == Left::some && draw_index(engine, 2) == 0)) continue;
    for (const auto& [name, target] : change) {
      if (target < 0)
        names.erase(name);
      else
        names[name] = target;
    }
  }
  for (const auto& [name, target] : names) write_node(target, path / name, left, engine);
}

std::set<std::string> TracedDisk::acknowledged() const {
  std::set<std::string> cells;
  // Journals by their names at the time, whether or not those would survive.
  const auto visit = [&](const auto& self, int index, const std::string& name) -> void {
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    for (const auto& [below, target] : node.names) self(self, target, below);
    if (!name.ends_with(".jsonl")) return;
    std::istringstream lines(node.flushed_content);
    for (std::string line; std::getline(lines, line) && !lines.eof();)
      cells.insert(parse_record_line(line).cell);
  };
  visit(visit, 0, "");
  return cells;
}

}  // namespace moelab::faults
