#include "plots/page_data.h"

#include <nlohmann/json.hpp>

#include "plots/html_text.h"

namespace moelab {

using Json = nlohmann::ordered_json;

std::string page_data(const Json& data) {
  return "<script type=\"application/json\">" +
         script_text(data.dump(-1, ' ', false, Json::error_handler_t::replace)) + "</script>";
}

Json number_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace moelab
