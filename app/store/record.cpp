#include "app/store/record.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace moelab {
namespace {

constexpr std::string_view kBeforeChecksum = R"({"checksum":")";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::string_view kBeforeRecord = R"(","record":)";
constexpr std::string_view kAfterRecord = "}";

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double named_number(const std::string& name) {
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  throw std::runtime_error("'" + name + "' is not a number");
}

Json metrics_json(const MetricValues& metrics) {
  Json object = Json::object();
  for (const auto& [name, value] : metrics) object[name] = number_json(value);
  return object;
}

Json numbers_json(const Record& record) {
  Json trace = Json::array();
  for (const TraceEntry& entry : record.trace) {
    trace.push_back({{"step", entry.step}, {"metrics", metrics_json(entry.metrics)}});
  }
  return {{"cell", record.cell},
          {"state", record.state},
          {"metrics", metrics_json(record.metrics)},
          {"trace", std::move(trace)}};
}

/// Fills a record while its JSON text is parsed, without a tree of values. It refuses a text with another
/// structure.
class RecordReader : public nlohmann::json_sax<Json> {
 public:
  explicit RecordReader(RecordPart part) : part_(part) {}
  /// Whether the reader has read all requested fields.
  bool is_complete() const { return stopped_ || (depth_ == 0 && fields_ == kFields); }
  Record record;

  bool null() override { return refuse(); }
  bool boolean(bool) override { return refuse(); }
  bool binary(binary_t&) override { return refuse(); }
  bool number_float(double value, const std::string&) override { return number(value); }
  bool number_unsigned(std::uint64_t value) override {
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_integer(std::int64_t value) override {
    if (depth_ != 3 || key_ != "step") return number(static_cast<double>(value));
    record.trace.back().step = value;
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 1 && field_ == "cell") {
      record.cell = std::move(value);
    } else if (depth_ == 1 && field_ == "state") {
      record.state = std::move(value);
    } else if (depth_ == 1 && field_ == "message") {
      record.message = std::move(value);
    } else if (depth_ == 2 && field_ == "arrays") {
      record.arrays[key_] = std::move(value);
    } else if (depth_ == 2 && key_ == "finished_at") {
      record.finished_at = std::move(value);
    } else {
      return number(named_number(value));
    }
    return true;
  }
  bool key(std::string& name) override {
    key_ = std::move(name);
    if (depth_ > 1) return true;
    field_ = key_;
    fields_ += field_ == "arrays" ? 0 : 1;
    const bool is_last = (part_ == RecordPart::state && field_ == "metrics") ||
                         (part_ == RecordPart::metrics && field_ == "trace");
    stopped_ = is_last && record.state != "failed";
    return !stopped_;
  }
  bool start_object(std::size_t) override {
    const bool is_entry = depth_ == 2 && field_ == "trace";
    const bool is_part = depth_ == 1 && (field_ == "metrics" || field_ == "arrays" || field_ == "timing");
    if (is_entry) record.trace.emplace_back();
    if (depth_ > 0 && !is_entry && !is_part && !(depth_ == 3 && key_ == "metrics")) return refuse();
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 1 || field_ != "trace") return refuse();
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw std::runtime_error(error.what());
  }

 private:
  static constexpr int kFields = 6;  ///< cell, state, metrics, trace, message, timing

  bool refuse() const { throw std::runtime_error("the record has another form at '" + key_ + "'"); }
  bool number(double value) {
    if (depth_ == 2 && field_ == "metrics") {
      record.metrics.insert_or_assign(record.metrics.end(), key_, value);
    } else if (depth_ == 4) {
      MetricValues& metrics = record.trace.back().metrics;
      metrics.insert_or_assign(metrics.end(), key_, value);
    } else if (depth_ == 2 && field_ == "timing") {
      time(value);
    } else {
      return refuse();
    }
    return true;
  }

  void time(double value) {
    if (key_ == "seconds") {
      record.seconds = value;
      return;
    }
    if (!record.spent) record.spent.emplace();
    if (key_ == "processor_seconds") {
      record.spent->total = value;
    } else if (key_ == "training_seconds") {
      record.spent->training = value;
    } else if (key_ == "measuring_seconds") {
      record.spent->measuring = value;
    } else {
      refuse();
    }
  }

  RecordPart part_;
  int depth_ = 0;
  int fields_ = 0;
  bool stopped_ = false;
  std::string field_, key_;
};

}  // namespace

std::string checksum(std::string_view bytes) {
  return fmt::format("{:08x}", ::libdeflate_crc32(0, bytes.data(), bytes.size()));
}

std::string state_name(CellResult::State state) {
  switch (state) {
    case CellResult::State::done:
      return "done";
    case CellResult::State::diverged:
      return "diverged";
    case CellResult::State::failed:
      return "failed";
    case CellResult::State::interrupted:
      return "interrupted";
  }
  throw std::logic_error("a cell state without a name");
}

std::string record_line(const Record& record) {
  Json numbers = numbers_json(record), json = {{"cell", record.cell}, {"state", record.state}};
  // Arrays come before the long fields, so that readers of the state alone get them too.
  if (!record.arrays.empty()) json["arrays"] = record.arrays;
  for (const char* part : {"metrics", "trace"}) json[part] = std::move(numbers[part]);
  json["message"] = record.message;
  json["timing"] = {{"seconds", record.seconds}, {"finished_at", record.finished_at}};
  if (record.spent) {
    json["timing"]["processor_seconds"] = record.spent->total;
    json["timing"]["training_seconds"] = record.spent->training;
    json["timing"]["measuring_seconds"] = record.spent->measuring;
  }
  // A message may quote bytes that are not UTF-8. They become U+FFFD, so that the record is not lost.
  return sealed_line(json_text(json, -1));
}

std::string sealed_line(std::string_view text) {
  return fmt::format("{}{}{}{}{}", kBeforeChecksum, checksum(text), kBeforeRecord, text, kAfterRecord);
}

Record parse_record_line(std::string_view line, RecordPart part) {
  const std::size_t record_start = kBeforeChecksum.size() + kChecksumDigits + kBeforeRecord.size();
  if (line.size() <= record_start + kAfterRecord.size() || !line.starts_with(kBeforeChecksum) ||
      line.substr(record_start - kBeforeRecord.size(), kBeforeRecord.size()) != kBeforeRecord ||
      !line.ends_with(kAfterRecord)) {
    throw std::runtime_error("not a checksum and a record");
  }
  const std::string_view text = line.substr(record_start, line.size() - record_start - kAfterRecord.size());
  const std::string_view stated = line.substr(kBeforeChecksum.size(), kChecksumDigits);
  const std::string computed = checksum(text);
  if (stated != computed) {
    throw std::runtime_error(fmt::format("the checksum is {}, the record's is {}", stated, computed));
  }
  RecordReader reader(part);
  Json::sax_parse(text, &reader);
  if (!reader.is_complete()) throw std::runtime_error("the record is not complete");
  return std::move(reader.record);
}

std::vector<std::string> record_differences(const Record& left, const Record& right) {
  std::vector<std::string> lines;
  if (left.state != right.state) lines.push_back(fmt::format("state: {} and {}", left.state, right.state));
  MetricValues all = left.metrics;
  all.insert(right.metrics.begin(), right.metrics.end());
  const auto text_of = [](const MetricValues& metrics, const std::string& name) {
    const auto metric = metrics.find(name);
    return metric == metrics.end() ? std::string("absent") : fmt::format("{}", metric->second);
  };
  for (const auto& metric : all) {
    const std::string one = text_of(left.metrics, metric.first), other = text_of(right.metrics, metric.first);
    if (one != other) lines.push_back(fmt::format("{}: {} and {}", metric.first, one, other));
  }
  if (!lines.empty() || same_numbers(left, right)) return lines;
  lines.push_back(numbers_json(left) == numbers_json(right) ? "the arrays differ" : "the traces differ");
  return lines;
}

bool same_numbers(const Record& left, const Record& right) {
  // Journals of earlier builds name no arrays.
  const bool same_arrays = left.arrays.empty() || right.arrays.empty() || left.arrays == right.arrays;
  return same_arrays && numbers_json(left).dump() == numbers_json(right).dump();
}

}  // namespace moelab
