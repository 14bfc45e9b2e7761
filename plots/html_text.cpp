#include "plots/html_text.h"

#include "sim/base/visible_text.h"

namespace moelab {

std::string html_text(std::string_view text) {
  std::string html;
  for (const char letter : visible_text(text)) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

std::string script_text(std::string_view json) {
  std::string text;
  for (const char letter : visible_text(json))
    text += letter == '<' ? std::string("\\u003c") : std::string(1, letter);
  return text;
}

}  // namespace moelab
