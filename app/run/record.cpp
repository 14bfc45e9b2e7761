#include "app/run/record.h"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace moelab {
namespace {

constexpr std::string_view kBeforeChecksum = R"({"checksum":")";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::string_view kBeforeRecord = R"(","record":)";
constexpr std::string_view kAfterRecord = "}";

std::string checksum(std::string_view text) {
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  return fmt::format("{:08x}", crc.checksum());
}

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double json_number(const Json& value) {
  if (!value.is_string()) return value.get<double>();
  const std::string& name = value.get_ref<const std::string&>();
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

MetricValues json_metrics(const Json& object) {
  MetricValues metrics;
  for (const auto& [name, value] : object.items()) metrics[name] = json_number(value);
  return metrics;
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

}  // namespace

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
  Json json = numbers_json(record);
  json["message"] = record.message;
  json["timing"] = {{"seconds", record.seconds}, {"finished_at", record.finished_at}};
  // A message may quote bytes that are not UTF-8; they become U+FFFD instead of losing the record.
  return sealed_line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string sealed_line(std::string_view text) {
  return fmt::format("{}{}{}{}{}", kBeforeChecksum, checksum(text), kBeforeRecord, text, kAfterRecord);
}

Record parse_record_line(std::string_view line) {
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
  const Json json = Json::parse(text);
  Record record;
  record.cell = json.at("cell").get<std::string>();
  record.state = json.at("state").get<std::string>();
  record.message = json.at("message").get<std::string>();
  record.metrics = json_metrics(json.at("metrics"));
  for (const Json& entry : json.at("trace")) {
    record.trace.push_back({entry.at("step").get<std::int64_t>(), json_metrics(entry.at("metrics"))});
  }
  record.seconds = json.at("timing").at("seconds").get<double>();
  record.finished_at = json.at("timing").at("finished_at").get<std::string>();
  return record;
}

bool same_numbers(const Record& left, const Record& right) {
  return numbers_json(left).dump() == numbers_json(right).dump();
}

}  // namespace moelab
