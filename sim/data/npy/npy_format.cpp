#include "sim/data/npy/npy_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <stdexcept>

namespace moelab {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;
constexpr std::size_t kMaxDimensions = 32;  // NumPy's own limit
constexpr std::string_view kAllowedTypes =
    "little-endian float16, float32, float64, int8 to int64, uint8 to uint32 and bool are read";

struct TypeEntry {
  NpyType type;
  std::string_view code;  // as in descr, without the byte order
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeEntry, 11> kTypes = {{{NpyType::float16, "f2", "float16", 2},
                                               {NpyType::float32, "f4", "float32", 4},
                                               {NpyType::float64, "f8", "float64", 8},
                                               {NpyType::int8, "i1", "int8", 1},
                                               {NpyType::int16, "i2", "int16", 2},
                                               {NpyType::int32, "i4", "int32", 4},
                                               {NpyType::int64, "i8", "int64", 8},
                                               {NpyType::uint8, "u1", "uint8", 1},
                                               {NpyType::uint16, "u2", "uint16", 2},
                                               {NpyType::uint32, "u4", "uint32", 4},
                                               {NpyType::boolean, "b1", "bool", 1}}};

const TypeEntry& entry_of(NpyType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeEntry& e) { return e.type == type; });
}

[[noreturn]] void refuse(const std::string& message) {
  throw std::runtime_error(message);
}

/// Text from the file as it may stand in a message.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown;
  for (const char c : text.substr(0, kLongest))
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  return "'" + shown + (text.size() > kLongest ? "…'" : "'");
}

NpyType parse_type(std::string_view descr) {
  if (descr.size() < 2) refuse("holds values of type " + quoted(descr) + "; " + std::string(kAllowedTypes));
  const char order = descr.front();
  const std::string_view code = descr.substr(1);
  for (const TypeEntry& entry : kTypes) {
    if (entry.code != code) continue;
    if (entry.bytes == 1 || order == '<') return entry.type;
    if (order == '>')
      refuse(fmt::format("holds big-endian values ({}); save array.astype('<{}') instead: {}", quoted(descr),
                         code, kAllowedTypes));
  }
  std::string kind;
  if (code.front() == 'O') kind = "Python objects ";
  if (code.front() == 'c') kind = "complex numbers ";
  if (code.front() == 'U' || code.front() == 'S') kind = "text ";
  refuse(fmt::format("holds {}(type {}); {}", kind.empty() ? "values of another kind " : kind, quoted(descr),
                     kAllowedTypes));
}

/// Reads the Python dictionary of a header from left to right, without recursion.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NpyFormat parse() {
    NpyFormat format;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        format.type = type();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        format.fortran_order = truth();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        format.shape = tuple();
      } else {
        malformed("the key " + quoted(key) + " is unknown or given twice");
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) malformed("text follows the dictionary");
    if (!has_type || !has_order || !has_shape) malformed("descr, fortran_order or shape is missing");
    return format;
  }

 private:
  [[noreturn]] void malformed(const std::string& why) const {
    refuse(fmt::format("has a malformed .npy header ({}): {}", why, quoted(text_)));
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool accept(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) malformed(fmt::format("'{}' expected at byte {}", wanted, at_));
  }

  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') malformed(fmt::format("a string expected at byte {}", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed("a string does not end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  NpyType type() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
      refuse("holds a structured type, an array with fields; " + std::string(kAllowedTypes));
    return parse_type(string());
  }

  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += std::string_view(word).size();
      return value;
    }
    malformed("fortran_order is neither True nor False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> lengths;
    expect('(');
    while (!accept(')')) {
      if (lengths.size() == kMaxDimensions) malformed("more than 32 dimensions");
      lengths.push_back(length());
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return lengths;
  }

  std::int64_t length() {
    skip_space();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const std::int64_t digit = text_[at_++] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) malformed("a length overflows");
      value = value * 10 + digit;
    }
    if (at_ == begin) malformed(fmt::format("a length expected at byte {}", at_));
    // Python 2 wrote long integers as 5L.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::size_t byte(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

/// Bytes that preamble and header take together.
std::size_t header_end(std::string_view start) {
  if (start.starts_with("PK\x03\x04"))
    refuse("is a zip archive (.npz or .pt), not a .npy file; save each array with numpy.save");
  if (!start.starts_with(kMagic))
    refuse(start.empty() ? std::string("is empty, not a .npy file")
                         : "is not a .npy file: it begins with " + quoted(start.substr(0, kMagic.size())));
  const bool is_short = start.size() < kVersionEnd;
  const std::size_t major = is_short ? 0 : byte(start, 6), minor = is_short ? 0 : byte(start, 7);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (is_short || start.size() < kVersionEnd + length_bytes)
    refuse(fmt::format("is truncated: {} bytes, less than the start of a header", start.size()));
  if (major < 1 || major > 3 || minor != 0)
    refuse(fmt::format("has .npy format {}.{}; formats 1.0, 2.0 and 3.0 are read", major, minor));
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | byte(start, kVersionEnd + i);
  if (length > kMaxNpyHeader)
    refuse(fmt::format("has a header of {} bytes; at most {} are read", length, kMaxNpyHeader));
  return kVersionEnd + length_bytes + length;
}

void check_volume(const NpyFormat& format) {
  std::int64_t left =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(byte_size(format.type));
  for (const std::int64_t length : format.shape) {
    if (length == 0) return;
    left /= length;
  }
  if (left == 0) refuse("has the shape " + shape_text(format.shape) + ", more values than any file can hold");
}

}  // namespace

std::string type_name(NpyType type) {
  return std::string(entry_of(type).name);
}

std::size_t byte_size(NpyType type) {
  return entry_of(type).bytes;
}

bool is_integer(NpyType type) {
  return type != NpyType::float16 && type != NpyType::float32 && type != NpyType::float64;
}

std::uint64_t NpyFormat::value_bytes() const {
  std::uint64_t bytes = byte_size(type);
  for (const std::int64_t length : shape)
    if (length == 0) return 0;
  for (const std::int64_t length : shape) bytes *= static_cast<std::uint64_t>(length);
  return bytes;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

NpyFormat parse_npy_header(std::string_view bytes) {
  const std::size_t size = header_end(bytes);
  if (bytes.size() < size)
    refuse(fmt::format("is truncated: {} bytes of a header of {}", bytes.size(), size));
  const std::size_t begin = kVersionEnd + (byte(bytes, 6) == 1 ? 2u : 4u);
  NpyFormat format = Parser(bytes.substr(begin, size - begin)).parse();
  format.header_bytes = size;
  check_volume(format);
  return format;
}

}  // namespace moelab
