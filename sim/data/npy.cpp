#include "sim/data/npy.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;
constexpr std::size_t kMaxDimensions = 32;  // NumPy's own limit
constexpr std::string_view kAllowedTypes =
    "float16, float32, float64, int8 to int64, uint8 to uint64 and bool are read";

struct TypeEntry {
  NpyType type;
  std::string_view code;  // as in descr, without the byte order
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeEntry, 14> kTypes = {{{NpyType::float16, "f2", "float16", 2},
                                               {NpyType::float32, "f4", "float32", 4},
                                               {NpyType::float64, "f8", "float64", 8},
                                               {NpyType::int8, "i1", "int8", 1},
                                               {NpyType::int16, "i2", "int16", 2},
                                               {NpyType::int32, "i4", "int32", 4},
                                               {NpyType::int64, "i8", "int64", 8},
                                               {NpyType::uint8, "u1", "uint8", 1},
                                               {NpyType::uint16, "u2", "uint16", 2},
                                               {NpyType::uint32, "u4", "uint32", 4},
                                               {NpyType::uint64, "u8", "uint64", 8},
                                               {NpyType::boolean, "b1", "bool", 1},
                                               {NpyType::bfloat16, "", "bfloat16", 2},
                                               {NpyType::void16, "V2", "void16", 2}}};

const TypeEntry& entry_of(NpyType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeEntry& e) { return e.type == type; });
}

[[noreturn]] void refuse(const std::string& message) {
  throw std::runtime_error(message);
}

/// Text from the file in a form that is safe in a message.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown;
  for (const char c : text.substr(0, kLongest))
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  return "'" + shown + (text.size() > kLongest ? "…'" : "'");
}

/// Sets the type and the order of bytes.
void parse_type(std::string_view descr, NpyFormat& format) {
  if (descr.size() < 2) refuse("holds values of type " + quoted(descr) + "; " + std::string(kAllowedTypes));
  const char order = descr.front();
  const std::string_view code = descr.substr(1);
  for (const TypeEntry& entry : kTypes) {
    if (entry.code != code) continue;
    if (entry.bytes > 1 && order != '<' && order != '>') continue;
    format.type = entry.type;
    format.is_big_endian = entry.bytes > 1 && order == '>';
    return;
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
        type(format);
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

  void type(NpyFormat& format) {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
      refuse("holds a structured type, an array with fields; " + std::string(kAllowedTypes));
    parse_type(string(), format);
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

/// The length of preamble and header.
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

static_assert(std::endian::native == std::endian::little, "values are read in the machine's own byte order");

/// The longest beginning of a file that can hold a header.
constexpr std::uint64_t kStart = kMaxNpyHeader + 12;

/// Opens a file that a user named at `place`. A file with a content was checked before.
std::shared_ptr<const InputFile> open_array(const std::filesystem::path& file, const std::string& place,
                                            std::shared_ptr<const FileContent> content) {
  std::error_code unseen;
  const std::filesystem::file_status status = std::filesystem::status(file, unseen);
  const std::string name = "'" + file.string() + "'";
  if (!content && status.type() == std::filesystem::file_type::not_found)
    throw UserError(place, "no file " + name);
  if (!content && !unseen && !std::filesystem::is_regular_file(status))
    throw UserError(place, name + " is no file; needs a .npy file");
  return std::make_shared<InputFile>(file, std::move(content));
}

template <class Stored, class Value>
void convert_as(const char* bytes, std::int64_t count, Value* values, std::int64_t stride) {
  // Groups of a fixed size are converted by vectors.
  constexpr std::int64_t kGroup = 16, kBytes = static_cast<std::int64_t>(sizeof(Stored));
  std::int64_t done = 0;
  for (; stride == 1 && done + kGroup <= count; done += kGroup) {
    Stored stored[kGroup];
    std::memcpy(stored, bytes + done * kBytes, sizeof(stored));
    Value* const to = values + done;
    for (std::int64_t i = 0; i < kGroup; ++i) to[i] = static_cast<Value>(stored[i]);
  }
  for (std::int64_t i = done; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * kBytes, sizeof(Stored));
    values[i * stride] = static_cast<Value>(stored);
  }
}

template <class Value>
void convert(NpyType type, const char* bytes, std::int64_t count, Value* values, std::int64_t stride) {
  switch (type) {
    case NpyType::float16:
      return convert_as<Eigen::half>(bytes, count, values, stride);
    case NpyType::float32:
      return convert_as<float>(bytes, count, values, stride);
    case NpyType::float64:
      return convert_as<double>(bytes, count, values, stride);
    case NpyType::int8:
      return convert_as<std::int8_t>(bytes, count, values, stride);
    case NpyType::int16:
      return convert_as<std::int16_t>(bytes, count, values, stride);
    case NpyType::int32:
      return convert_as<std::int32_t>(bytes, count, values, stride);
    case NpyType::int64:
      return convert_as<std::int64_t>(bytes, count, values, stride);
    case NpyType::uint8:
    case NpyType::boolean:
      return convert_as<std::uint8_t>(bytes, count, values, stride);
    case NpyType::uint16:
      return convert_as<std::uint16_t>(bytes, count, values, stride);
    case NpyType::uint32:
      return convert_as<std::uint32_t>(bytes, count, values, stride);
    case NpyType::uint64:
      return convert_as<std::uint64_t>(bytes, count, values, stride);
    case NpyType::bfloat16:
    case NpyType::void16:
      return convert_as<Eigen::bfloat16>(bytes, count, values, stride);
  }
}

/// For every entry of a row in C order, its place in Fortran order of the same trailing dimensions.
std::vector<std::int64_t> fortran_places(const std::vector<std::int64_t>& shape, std::int64_t row_size) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(row_size), 0);
  for (std::int64_t entry = 0; entry < row_size; ++entry) {
    std::int64_t rest = entry, block = row_size;
    for (std::size_t axis = shape.size(); axis-- > 1;) {
      block /= shape[axis];
      places[static_cast<std::size_t>(entry)] += rest % shape[axis] * block;
      rest /= shape[axis];
    }
  }
  return places;
}

static_assert(std::endian::native == std::endian::little,
              "arrays are written in the machine's own byte order");

template <class Value>
std::string bytes_of(const std::string& type, const std::vector<std::int64_t>& shape,
                     std::span<const Value> values) {
  const std::int64_t size =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
  if (size != static_cast<std::int64_t>(values.size())) {
    throw std::invalid_argument(
        fmt::format("an array of {} values does not have the shape of {}", values.size(), size));
  }
  std::string bytes = npy_header(type, shape);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return bytes;
}

}  // namespace

std::string type_name(NpyType type) {
  return std::string(entry_of(type).name);
}

std::size_t byte_size(NpyType type) {
  return entry_of(type).bytes;
}

bool is_float(NpyType type) {
  return type == NpyType::float16 || type == NpyType::bfloat16 || type == NpyType::float32 ||
         type == NpyType::float64;
}

bool is_integer(NpyType type) {
  return !is_float(type) && type != NpyType::void16;
}

std::optional<NpyType> type_of_name(std::string_view name) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.name == name && entry.type != NpyType::void16) return entry.type;
  }
  return std::nullopt;
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

NpyReader::NpyReader(const std::filesystem::path& file, std::string place,
                     std::shared_ptr<const FileContent> content, std::optional<NpyType> stored_as)
    : place_(std::move(place)), file_(open_array(file, place_, std::move(content))) {
  read_format();
  if (stored_as && !is_float(type()) && byte_size(type()) == byte_size(*stored_as)) format_.type = *stored_as;
  check_format();
}

NpyReader::NpyReader(const MemoryArray& array, std::string place, std::string name)
    : place_(std::move(place)), name_(std::move(name)), memory_(array.values), format_(array.format) {
  check_format();
}

NpyReader::NpyReader(std::shared_ptr<const InputFile> file, NpyFormat format, std::string place,
                     std::string name)
    : place_(std::move(place)), name_(std::move(name)), file_(std::move(file)), format_(std::move(format)) {
  check_format();
}

NpyReader::NpyReader(std::shared_ptr<const std::string> values, NpyFormat format, std::string place,
                     std::string name, std::filesystem::path file)
    : place_(std::move(place)),
      name_(std::move(name)),
      kept_(std::move(values)),
      named_file_(std::move(file)),
      memory_(kept_->data()),
      format_(std::move(format)) {
  check_format();
}

NpyReader NpyReader::as(NpyType type) const {
  NpyReader other = *this;
  other.format_.type = type;
  return other;
}

NpyReader NpyReader::part(std::int64_t first, std::vector<std::int64_t> shape, std::string name) const {
  MOELAB_EXPECT(!format_.fortran_order && (run_ == 0 || first == 0));
  NpyReader other = *this;
  other.name_ = std::move(name);
  other.format_.shape = std::move(shape);
  other.format_.header_bytes += static_cast<std::size_t>(first) * byte_size(type());
  other.check_format();
  return other;
}

NpyReader NpyReader::slice(std::size_t axis, std::int64_t index, std::vector<std::int64_t> shape,
                           std::string name) const {
  MOELAB_EXPECT(!format_.fortran_order && run_ == 0);
  std::int64_t run = 1;
  for (std::size_t after = axis + 1; after < this->shape().size(); ++after) run *= this->shape()[after];
  NpyReader other = part(index * run, std::move(shape), std::move(name));
  other.run_ = run;
  other.stride_ = run * this->shape()[axis];
  return other;
}

NpyReader NpyReader::reshaped(std::vector<std::int64_t> shape) const {
  return part(0, std::move(shape), name_);
}

NpyReader NpyReader::transposed(const std::vector<std::size_t>& order) const {
  MOELAB_EXPECT(run_ == 0);
  const std::size_t axes = shape().size();
  std::vector<std::size_t> strides(axes, byte_size(type())), moved(axes);
  if (format_.fortran_order) {
    for (std::size_t axis = 1; axis < axes; ++axis)
      strides[axis] = strides[axis - 1] * static_cast<std::size_t>(shape()[axis - 1]);
  } else {
    for (std::size_t axis = axes - 1; axis-- > 0;)
      strides[axis] = strides[axis + 1] * static_cast<std::size_t>(shape()[axis + 1]);
  }
  NpyFormat format{type(), false, {}, 0, format_.is_big_endian};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    format.shape.push_back(shape()[order[axis]]);
    moved[axis] = strides[order[axis]];
  }
  if (!format_.fortran_order && std::is_sorted(order.begin(), order.end())) return *this;
  const std::size_t total = format_.value_bytes(), width = byte_size(type());
  std::string own;
  const char* from = memory_ ? memory_ + format_.header_bytes : nullptr;
  if (!from) {
    own.resize(total);
    file_->read(format_.header_bytes, own.data(), total);
    from = own.data();
  }
  auto values = std::make_shared<std::string>(total, '\0');
  std::vector<std::int64_t> index(axes, 0);
  std::size_t at = 0;
  for (std::size_t to = 0; to < total; to += width) {
    std::memcpy(values->data() + to, from + at, width);
    for (std::size_t axis = axes; axis-- > 0;) {
      at += moved[axis];
      if (++index[axis] < format.shape[axis]) break;
      at -= moved[axis] * static_cast<std::size_t>(format.shape[axis]);
      index[axis] = 0;
    }
  }
  return {std::move(values), std::move(format), place_, name_, file_ ? file_->path() : named_file_};
}

void NpyReader::check_format() {
  if (type() == NpyType::void16)
    refuse(
        "holds two bytes a value of a type that NumPy does not know (<V2), bfloat16 perhaps; save "
        "array.astype('float32'), or give --dtype bfloat16 to `analyze`");
  if (format_.shape.empty()) refuse("is a single value, shape (); needs at least one dimension");
  if (rows() == 0) refuse(fmt::format("has no rows: shape {}; needs at least one", shape_text(shape())));
  const std::uint64_t bytes = format_.value_bytes();
  if (bytes == 0) refuse(fmt::format("has no entries: shape {}; needs at least one", shape_text(shape())));
  row_size_ = static_cast<std::int64_t>(bytes / byte_size(type())) / rows();
  if (format_.fortran_order) fortran_offsets_ = fortran_places(shape(), row_size_);
}

void NpyReader::read_format() {
  const std::uint64_t size = file_->size();
  std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(size, kStart)), '\0');
  file_->read(0, start.data(), start.size());
  try {
    format_ = parse_npy_header(start);
  } catch (const std::runtime_error& refusal) {
    refuse(refusal.what());
  }
  const std::uint64_t found = size - format_.header_bytes, needed = format_.value_bytes();
  const std::string array = shape_text(shape()) + " of " + type_name(type());
  if (found < needed)
    refuse(fmt::format("is truncated: {} bytes of values, {} needs {}", found, array, needed));
  if (found > needed)
    refuse(fmt::format("has {} bytes after its values, which are {} bytes for {}", found - needed, needed,
                       array));
}

std::string NpyReader::place_of(std::int64_t row, std::int64_t entry) const {
  if (shape().size() == 1) return fmt::format("row {}", row);
  if (shape().size() == 2) return fmt::format("row {}, column {}", row, entry);
  std::string index = "]";
  for (std::size_t axis = shape().size(); axis-- > 1;) {
    index = fmt::format(", {}", entry % shape()[axis]) + index;
    entry /= shape()[axis];
  }
  return fmt::format("[{}", row) + index;
}

std::string NpyReader::title() const {
  const std::string file = file_ ? file_->path().string() : named_file_.string();
  if (file.empty()) return name_.empty() ? "the array" : fmt::format("the array '{}'", name_);
  return name_.empty() ? fmt::format("'{}'", file) : fmt::format("'{}:{}'", file, name_);
}

void NpyReader::refuse(const std::string& message) const {
  throw UserError(place_, title() + " " + message);
}

template <class Value>
void NpyReader::read_values(std::int64_t first, std::int64_t count, Value* values) const {
  if (first < 0 || count < 0 || first > rows() - count) throw std::out_of_range("rows of a .npy file");
  const std::int64_t width = static_cast<std::int64_t>(byte_size(type()));
  const auto offset = [&](std::int64_t entry) {
    return format_.header_bytes + static_cast<std::uint64_t>(entry * width);
  };
  std::vector<char> buffer;
  const auto bytes_at = [&](std::int64_t entry, std::int64_t count_of) {
    if (memory_ && !format_.is_big_endian) return memory_ + offset(entry);
    buffer.resize(static_cast<std::size_t>(count_of * width));
    if (memory_)
      std::copy_n(memory_ + offset(entry), buffer.size(), buffer.data());
    else
      file_->read(offset(entry), buffer.data(), buffer.size());
    for (std::size_t at = 0; format_.is_big_endian && at < buffer.size();
         at += static_cast<std::size_t>(width))
      std::reverse(&buffer[at], &buffer[at] + width);
    return static_cast<const char*>(buffer.data());
  };
  if (!format_.fortran_order) {
    // Pieces that stay in the cache until they are converted. What lies between short runs is read as well.
    const std::int64_t begin = first * row_size_, end = begin + count * row_size_;
    const std::int64_t most = static_cast<std::int64_t>(FileContent::kBlock) / width;
    for (std::int64_t entry = begin; entry < end;) {
      const std::int64_t run = run_ > 0 ? run_ : end, inside = entry % run,
                         at = entry / run * stride_ + inside;
      const std::int64_t runs = run_ > 0 && inside == 0 ? std::min(most / stride_, (end - entry) / run) : 0;
      Value* const to = values + (entry - begin);
      if (runs < 2) {
        const std::int64_t entries = std::min({most, run - inside, end - entry});
        convert(type(), bytes_at(at, entries), entries, to, 1);
        entry += entries;
        continue;
      }
      const char* const bytes = bytes_at(at, (runs - 1) * stride_ + run);
      for (std::int64_t i = 0; i < runs; ++i)
        convert(type(), bytes + i * stride_ * width, run, to + i * run, 1);
      entry += runs * run;
    }
    return;
  }
  // Consecutive columns are read together, as many as fit a block.
  const auto columns = static_cast<std::int64_t>(fortran_offsets_.size());
  const auto column = [&](std::int64_t entry) { return fortran_offsets_[static_cast<std::size_t>(entry)]; };
  const std::int64_t most = static_cast<std::int64_t>(FileContent::kBlock) / (rows() * width);
  for (std::int64_t entry = 0, group = 1; entry < columns; entry += group) {
    for (group = 1; group < most && entry + group < columns; ++group) {
      if (column(entry + group) != column(entry) + group) break;
    }
    const char* const bytes = bytes_at(column(entry) * rows() + first, (group - 1) * rows() + count);
    for (std::int64_t i = 0; i < group; ++i)
      convert(type(), bytes + i * rows() * width, count, values + entry + i, row_size_);
  }
}

Matrix NpyReader::read(std::int64_t first, std::int64_t count) const {
  Matrix values;
  read(first, count, values);
  return values;
}

void NpyReader::read(std::int64_t first, std::int64_t count, Matrix& values) const {
  values.resize(count, row_size_);
  read_values(first, count, values.data());
}

Matrix NpyReader::read_finite(std::int64_t first, std::int64_t count) const {
  Matrix values = read(first, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    if (values.row(i).allFinite()) continue;
    for (Eigen::Index j = 0; j < row_size_; ++j) {
      if (!std::isfinite(values(i, j)))
        refuse(fmt::format("holds {} in {}; needs finite numbers", values(i, j), place_of(first + i, j)));
    }
  }
  return values;
}

std::vector<std::int64_t> NpyReader::read_integers(std::int64_t first, std::int64_t count) const {
  if (!is_integer(type()))
    refuse(fmt::format("holds {} values, needs integers (array.astype('int64'))", type_name(type())));
  std::vector<std::int64_t> values(static_cast<std::size_t>(count * row_size_));
  read_values(first, count, values.data());
  for (std::size_t i = 0; type() == NpyType::uint64 && i < values.size(); ++i) {
    if (values[i] >= 0) continue;
    const std::int64_t place = static_cast<std::int64_t>(i);
    refuse(fmt::format("holds {} in {}; needs integers below 2^63", static_cast<std::uint64_t>(values[i]),
                       place_of(first + place / row_size_, place % row_size_)));
  }
  return values;
}

std::vector<int> read_labels(const NpyReader& array, std::int64_t first, std::int64_t count,
                             std::int64_t limit) {
  const std::vector<std::int64_t> values = array.read_integers(first, count);
  std::vector<int> labels(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      const std::int64_t place = static_cast<std::int64_t>(i);
      array.refuse(fmt::format("holds {} in {}; labels are 0 to {}{}", values[i],
                               array.place_of(first + place / array.row_size(), place % array.row_size()),
                               limit - 1,
                               values[i] == -100 ? ". -100 marks rows without a label: leave them out" : ""));
    }
    labels[i] = static_cast<int>(values[i]);
  }
  return labels;
}

std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape) {
  std::string tuple;
  for (const std::int64_t length : shape) tuple += fmt::format("{}, ", length);
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);
  if (shape.size() == 1) tuple.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, tuple);
  constexpr std::size_t kPreamble = 10;  // magic (6), version (2), header length (2)
  constexpr std::size_t kHeaderAlignment = 64;
  const std::size_t used = kPreamble + header.size() + 1;
  header.append((kHeaderAlignment - used % kHeaderAlignment) % kHeaderAlignment, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const double> values) {
  return bytes_of("<f8", shape, values);
}

std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const std::int64_t> values) {
  return bytes_of("<i8", shape, values);
}

std::string npz_bytes(const std::vector<std::pair<std::string, std::string>>& arrays) {
  std::string bytes, directory;
  const auto append = [](std::string& to, std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
  };
  constexpr std::uint64_t kFirstDay = 0x21;  // 1980-01-01
  for (const auto& [array, content] : arrays) {
    const std::string name = array + ".npy";
    std::string fields;  // what both headers have in common
    append(fields, 20, 2);
    append(fields, 0, 2);
    append(fields, 0, 2);
    append(fields, 0, 2);
    append(fields, kFirstDay, 2);
    append(fields, libdeflate_crc32(0, content.data(), content.size()), 4);
    append(fields, content.size(), 4);
    append(fields, content.size(), 4);
    append(fields, name.size(), 2);
    append(fields, 0, 2);
    const std::uint64_t begin = bytes.size();
    bytes += std::string("PK\x03\x04") + fields + name + content;
    directory += std::string("PK\x01\x02");
    append(directory, 20, 2);
    directory += fields;
    append(directory, 0, 6);  // no comment, one disk, no attributes
    append(directory, 0, 4);
    append(directory, begin, 4);
    directory += name;
  }
  const std::uint64_t begin = bytes.size();
  if (begin + directory.size() > 0xFFFFFFFFu)
    throw EnvironmentError("the arrays take more than 4 GB, which a .npz file of this kind cannot hold");
  bytes += directory + "PK\x05\x06";
  append(bytes, 0, 4);
  append(bytes, arrays.size(), 2);
  append(bytes, arrays.size(), 2);
  append(bytes, directory.size(), 4);
  append(bytes, begin, 4);
  append(bytes, 0, 2);
  return bytes;
}

}  // namespace moelab
