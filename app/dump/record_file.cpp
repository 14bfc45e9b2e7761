#include "app/dump/record_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "app/dump/array_file.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The numbers of a nested list, and its shape.
struct FlatList {
  std::vector<double> values;
  std::vector<std::int64_t> shape;
  bool is_integral = true, is_regular = true;

  explicit FlatList(const Json& list) { add(list, 0); }

 private:
  void add(const Json& value, std::size_t depth) {
    if (value.is_array()) {
      const auto length = static_cast<std::int64_t>(value.size());
      if (shape.size() == depth && values.empty()) shape.push_back(length);
      if (depth >= shape.size() || shape[depth] != length) is_regular = false;
      for (const Json& entry : value) add(entry, depth + 1);
    } else if (value.is_number() || value.is_null() || value.is_boolean()) {
      if (depth != shape.size()) is_regular = false;
      if (value.is_null()) {
        values.push_back(std::numeric_limits<double>::quiet_NaN());
      } else {
        values.push_back(value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>());
      }
      constexpr double kExact = 9e15;
      is_integral = is_integral && (value.is_number_integer() || value.is_boolean()) &&
                    std::abs(values.back()) < kExact;
    } else {
      is_regular = false;
    }
  }
};

template <class Value>
void append_value(std::string& bytes, Value value) {
  char own[sizeof(Value)];
  std::memcpy(own, &value, sizeof(Value));
  bytes.append(own, sizeof(Value));
}

/// The type and values of a part of a column.
struct ColumnPart {
  NpyType type = NpyType::int64;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

/// The bytes of these int64 values as float64.
std::string reals_of(const std::string& wholes) {
  std::string reals;
  reals.reserve(wholes.size());
  for (std::size_t at = 0; at < wholes.size(); at += sizeof(std::int64_t)) {
    std::int64_t whole = 0;
    std::memcpy(&whole, wholes.data() + at, sizeof whole);
    append_value(reals, static_cast<double>(whole));
  }
  return reals;
}

/// The number of a field, or its text.
Json value_of_field(const std::string& field) {
  const char* const first = field.data();
  const char* const last = first + field.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(first, last, whole); read.ec == std::errc() && read.ptr == last)
    return whole;
  double real = 0;
  if (const auto read = std::from_chars(first, last, real); read.ec == std::errc() && read.ptr == last)
    return real;
  return field;
}

}  // namespace

NpyReader kept_array(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape,
                     const std::string& place, const std::string& name, const std::filesystem::path& file) {
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(values.size() * sizeof(std::int64_t));
  for (const std::int64_t value : values) append_value(*bytes, value);
  return {std::move(bytes), NpyFormat{NpyType::int64, false, std::move(shape), 0}, place, name, file};
}

RecordFile::RecordFile(std::filesystem::path file, std::string place)
    : file_(std::move(file)), place_(std::move(place)) {
  const std::string text = read_given_file(file_, place_);
  if (text.starts_with("PAR1"))
    throw UserError(place_, fmt::format("'{}' is a Parquet file, which moelab.analyze of the Python package "
                                        "reads",
                                        file_.string()));
  is_table_ = file_.extension() == ".csv" || file_.extension() == ".tsv";
  const std::string_view content = without_byte_order_mark(text);
  if (is_table_)
    read_table(content);
  else
    read_lines(content);
  if (records_.empty()) throw UserError(place_, fmt::format("'{}' has no records", file_.string()));
}

void RecordFile::refuse(std::size_t record, const std::string& message) const {
  refuse_line(lines_.at(record), message);
}

void RecordFile::refuse_line(std::size_t line, const std::string& message) const {
  throw UserError(place_, fmt::format("'{}' line {}: {}", file_.string(), line, message));
}

void RecordFile::read_lines(std::string_view text) {
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view own = text.substr(begin, end - begin);
    begin = end + 1;
    if (own.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (line == 1 && own[own.find_first_not_of(" \t")] != '{') {
      throw UserError(
          place_, fmt::format("'{}' is no .npy, .npz, .safetensors, .jsonl or .csv file", file_.string()));
    }
    Json record = parse_json(own, fmt::format("{}, line {}", file_.string(), line));
    if (!record.is_object()) refuse_line(line, "is no JSON object");
    records_.push_back(std::move(record));
    lines_.push_back(line);
  }
}

void RecordFile::read_table(std::string_view text) {
  CsvLines lines(text, {file_.extension() == ".tsv" ? '\t' : ',', true},
                 [this](std::size_t line, const std::string& message) { refuse_line(line, message); });
  std::vector<std::string> names;
  while (!lines.at_end()) {
    const std::vector<std::string> fields = lines.next();
    if (fields.size() == 1 && fields[0].empty()) continue;  // an empty line
    if (names.empty()) {
      names = fields;
      lines.check_names(names);
      continue;
    }
    if (fields.size() != names.size())
      refuse_line(lines.line(),
                  fmt::format("has {} fields, and the header has {}", fields.size(), names.size()));
    Json record = Json::object();
    for (std::size_t i = 0; i < fields.size(); ++i) record[names[i]] = value_of_field(fields[i]);
    records_.push_back(std::move(record));
    lines_.push_back(lines.line());
  }
}

const Json* RecordFile::find(const Json& record, const std::string& field) {
  if (const auto own = record.find(field); own != record.end()) return &*own;
  const Json* at = &record;
  std::size_t begin = 0;
  while (begin <= field.size()) {
    const std::size_t end = std::min(field.find('.', begin), field.size());
    if (!at->is_object()) return nullptr;
    const auto next = at->find(field.substr(begin, end - begin));
    if (next == at->end()) return nullptr;
    at = &*next;
    begin = end + 1;
  }
  return at;
}

std::vector<std::string> RecordFile::fields() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : records_.front().items()) {
    if (!value.is_object()) {
      names.push_back(key);
      continue;
    }
    for (const auto& [inner, unused] : value.items()) names.push_back(key + "." + inner);
  }
  return names;
}

Column RecordFile::column(const std::vector<std::string>& fields) const {
  Column column;
  column.name = fields.back();
  std::string bytes;
  std::optional<NpyType> type;
  std::vector<std::int64_t> tail;
  std::int64_t rows = 0;
  bool is_scalar = true, has_tail = false;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    std::int64_t own_rows = 0;
    for (const std::string& field : fields) {
      const Json* const value = find(records_[i], field);
      if (!value) {
        if (fields.size() > 1) continue;
        refuse(i, fmt::format("has no '{}'; fields are {}", field, fmt::join(this->fields(), ", ")));
      }
      ColumnPart part;
      if (value->is_string()) {
        const std::string& text = value->get_ref<const std::string&>();
        const std::optional<std::string> packed = text.size() >= 8 ? from_base64(text) : std::nullopt;
        if (packed && packed->starts_with("\x93NUMPY")) {
          try {
            const NpyFormat format = parse_npy_header(*packed);
            if (format.fortran_order || packed->size() != format.header_bytes + format.value_bytes())
              refuse(i, fmt::format("'{}' is a damaged .npy array in base64", field));
            if (format.is_big_endian) refuse(i, fmt::format("'{}' holds big-endian values", field));
            part = {format.type, format.shape, packed->substr(format.header_bytes)};
          } catch (const std::runtime_error& refusal) {
            refuse(i, fmt::format("'{}' {}", field, refusal.what()));
          }
        } else if (packed && packed->size() % 4 == 0 && !packed->empty() && text.size() >= 32) {
          column.is_raw = true;
          part = {NpyType::int32, {static_cast<std::int64_t>(packed->size() / 4)}, *packed};
        } else {
          column.texts.push_back(text);
          continue;
        }
      } else {
        const FlatList list(*value);
        if (!list.is_regular)
          refuse(i, fmt::format("'{}' is no number and no regular list of numbers", field));
        part.shape = list.shape;
        part.type = list.is_integral ? NpyType::int64 : NpyType::float64;
        for (const double number : list.values) {
          if (list.is_integral)
            append_value(part.bytes, static_cast<std::int64_t>(number));
          else
            append_value(part.bytes, number);
        }
      }
      if (part.shape.empty()) {
        part.shape = {1};
      } else {
        is_scalar = false;
      }
      // An empty list has no entries that would show the other dimensions.
      if (part.bytes.empty()) continue;
      const std::vector<std::int64_t> own_tail(part.shape.begin() + 1, part.shape.end());
      if (!has_tail) {
        tail = own_tail;
        has_tail = true;
      }
      if (own_tail != tail)
        refuse(i, fmt::format("'{}' has shape {}, and the record before has (T, {})", field,
                              shape_text(part.shape), fmt::join(tail, ", ")));
      // A column of whole numbers and fractions is one of fractions, whichever comes first.
      if (type && *type == NpyType::float64 && part.type == NpyType::int64) {
        part.bytes = reals_of(part.bytes);
        part.type = NpyType::float64;
      } else if (type && *type == NpyType::int64 && part.type == NpyType::float64) {
        bytes = reals_of(bytes);
        type = NpyType::float64;
      }
      if (type && *type != part.type)
        refuse(i, fmt::format("'{}' holds {} values, and the record before {}", field, type_name(part.type),
                              type_name(*type)));
      type = part.type;
      bytes += part.bytes;
      own_rows += part.shape.front();
    }
    column.lengths.push_back(own_rows);
    rows += own_rows;
  }
  if (!column.texts.empty()) {
    if (column.texts.size() != records_.size() || rows > 0)
      refuse(0, fmt::format("'{}' is a text in some records alone", column.name));
    column.lengths.clear();
    return column;
  }
  if (is_scalar) column.lengths.clear();
  if (!type) throw UserError(place_, fmt::format("'{}:{}' has no values", file_.string(), column.name));
  std::vector<std::int64_t> shape = {rows};
  shape.insert(shape.end(), tail.begin(), tail.end());
  column.values.emplace(std::make_shared<const std::string>(std::move(bytes)),
                        NpyFormat{*type, false, std::move(shape), 0}, place_, column.name, file_);
  return column;
}

}  // namespace moelab
