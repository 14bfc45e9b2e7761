#include "app/report/markdown.h"

#include <cctype>

namespace moelab {

std::string markdown_text(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '|' || letter == '*') escaped += '\\';
    if (letter == '<') {
      escaped += "&lt;";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string anchor(const std::string& heading) {
  std::string name;
  for (const char letter : heading) {
    if (letter == ' ') name += '-';
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) || letter == '_' || letter == '-') name += static_cast<char>(std::tolower(code));
  }
  return name;
}

}  // namespace moelab
