#include "sim/data/npy/npy_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "sim/base/error.h"

namespace moelab {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read in the machine's own byte order");

/// The longest start that holds a header.
constexpr std::uint64_t kStart = kMaxNpyHeader + 12;

/// Opens a file that a user named at `place`; one with a content was found there before.
InputFile open_array(const std::filesystem::path& file, const std::string& place,
                     std::shared_ptr<const FileContent> content) {
  std::error_code unseen;
  const std::filesystem::file_status status = std::filesystem::status(file, unseen);
  const std::string name = "'" + file.string() + "'";
  if (!content && status.type() == std::filesystem::file_type::not_found)
    throw UserError(place, "no file " + name);
  if (!content && !unseen && !std::filesystem::is_regular_file(status))
    throw UserError(place, name + " is no file; needs a .npy file");
  return InputFile(file, std::move(content));
}

template <class Stored, class Value>
void convert_as(const char* bytes, std::int64_t count, Value* values, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
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

}  // namespace

NpyReader::NpyReader(const std::filesystem::path& file, std::string place,
                     std::shared_ptr<const FileContent> content)
    : place_(std::move(place)), file_(open_array(file, place_, std::move(content))) {
  read_format();
  check_format();
}

NpyReader::NpyReader(const MemoryArray& array, std::string place)
    : place_(std::move(place)), memory_(array.values), format_(array.format) {
  check_format();
}

void NpyReader::check_format() {
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

void NpyReader::refuse(const std::string& message) const {
  throw UserError(place_, file_ ? fmt::format("'{}' {}", file_->path().string(), message)
                                : fmt::format("the array {}", message));
}

template <class Value>
void NpyReader::read_values(std::int64_t first, std::int64_t count, Value* values) const {
  if (first < 0 || count < 0 || first > rows() - count) throw std::out_of_range("rows of a .npy file");
  const std::int64_t width = static_cast<std::int64_t>(byte_size(type()));
  const auto offset = [&](std::int64_t entry) {
    return format_.header_bytes + static_cast<std::uint64_t>(entry * width);
  };
  const auto bytes_at = [&](std::int64_t entry, std::int64_t count_of, std::vector<char>& buffer) {
    if (!file_) return memory_ + offset(entry);
    buffer.resize(static_cast<std::size_t>(count_of * width));
    file_->read(offset(entry), buffer.data(), buffer.size());
    return static_cast<const char*>(buffer.data());
  };
  std::vector<char> buffer;
  if (!format_.fortran_order) {
    const std::int64_t entries = count * row_size_;
    convert(type(), bytes_at(first * row_size_, entries, buffer), entries, values, 1);
    return;
  }
  // Columns that follow one another are read together, as many as a block holds.
  const auto columns = static_cast<std::int64_t>(fortran_offsets_.size());
  const auto column = [&](std::int64_t entry) { return fortran_offsets_[static_cast<std::size_t>(entry)]; };
  const std::int64_t most = static_cast<std::int64_t>(FileContent::kBlock) / (rows() * width);
  for (std::int64_t entry = 0, group = 1; entry < columns; entry += group) {
    for (group = 1; group < most && entry + group < columns; ++group) {
      if (column(entry + group) != column(entry) + group) break;
    }
    const char* const bytes = bytes_at(column(entry) * rows() + first, (group - 1) * rows() + count, buffer);
    for (std::int64_t i = 0; i < group; ++i)
      convert(type(), bytes + i * rows() * width, count, values + entry + i, row_size_);
  }
}

Matrix NpyReader::read(std::int64_t first, std::int64_t count) const {
  Matrix values(count, row_size_);
  read_values(first, count, values.data());
  return values;
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
  return values;
}

std::vector<int> read_labels(const NpyReader& array, std::int64_t first, std::int64_t count,
                             std::int64_t limit) {
  const std::vector<std::int64_t> values = array.read_integers(first, count);
  std::vector<int> labels(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      const std::int64_t place = static_cast<std::int64_t>(i);
      array.refuse(fmt::format("holds {} in {}; labels are 0 to {}", values[i],
                               array.place_of(first + place / array.row_size(), place % array.row_size()),
                               limit - 1));
    }
    labels[i] = static_cast<int>(values[i]);
  }
  return labels;
}

}  // namespace moelab
