#include "app/run/seal.h"

#include <fmt/format.h>

#include "app/run/durable_file.h"
#include "app/run/record.h"

namespace moelab {
namespace {

constexpr std::string_view kBeforeSeal = "{\n \"checksum\": \"";
constexpr std::string_view kAfterSeal = "\",\n";
constexpr std::size_t kSealDigits = 8;
constexpr std::size_t kSealedFrom = kBeforeSeal.size() + kSealDigits + kAfterSeal.size();

}  // namespace

std::string sealed_text(const Json& object) {
  const std::string text = json_text(object, 1) + "\n";
  const std::string_view sealed = std::string_view(text).substr(2);  // behind "{\n"
  return fmt::format("{}{}{}{}", kBeforeSeal, checksum(sealed), kAfterSeal, sealed);
}

std::string seal_problem(std::string_view text) {
  if (text.size() < kSealedFrom || !text.starts_with(kBeforeSeal) ||
      text.substr(kSealedFrom - kAfterSeal.size(), kAfterSeal.size()) != kAfterSeal) {
    return "it does not begin with its checksum";
  }
  const std::string_view stated = text.substr(kBeforeSeal.size(), kSealDigits);
  const std::string computed = checksum(text.substr(kSealedFrom));
  return stated == computed ? "" : fmt::format("its checksum is {}, that of its text {}", stated, computed);
}

Json parse_sealed(std::string_view text, const Json::parser_callback_t& take) {
  Json object = Json::parse(text, take, false);
  if (!object.is_object()) return {};
  object.erase("checksum");
  return object;
}

Json read_sealed(const std::filesystem::path& file, const std::string& way_out) {
  const std::string text = read_bytes(file);
  std::string problem = seal_problem(text);
  Json object;
  if (problem.empty()) {
    object = parse_sealed(text);
    if (object.is_null()) problem = "it is not a JSON object";
  }
  if (!problem.empty()) throw UserError(file.string(), fmt::format("damaged: {}; {}", problem, way_out));
  return object;
}

}  // namespace moelab
