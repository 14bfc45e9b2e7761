#pragma once

/// Texts that mean something to a shell, to gnuplot, HTML, Markdown, a spreadsheet or a terminal: every
/// writer is held against all of them.

#include <string>
#include <vector>

namespace moelab {

inline const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> texts = {
      "",
      "plain words, test_loss_soft",
      "'soft' and 'top1'",
      "it''s '''quoted'''",
      "\"double\" \"\"twice\"\"",
      "'single' and \"double\" and \\ and `touch obeyed`",
      "`touch obeyed`",
      "'`touch obeyed`'7",
      "$(touch obeyed); touch obeyed & # comment",
      "ends with a backslash \\",
      "'ends with a backslash \\",
      "a_b ^{2} @name {/Symbol x} %d \\n \\U+0041",
      "'a_b' ^{2} @name {/Symbol x} %d \\n \\U+0041",
      "line\nbreak\n#SBATCH --wrap=obeyed\ntouch obeyed",
      "tab\tand\rreturn",
      "\x1b]0;title\x07 \x1b[31mred\x1b[0m",
      "C1 \xc2\x9b"
      "31m and a lone byte \x9b"
      "31m and DEL \x7f",
      "cut \xe2\x82",
      "<script>alert(1)</script> <img src=x onerror=alert(1)> &amp; &lt;",
      "' onmouseover='alert(1)' \" onmouseover=\"alert(1)\"",
      "[click](javascript:alert(1)) ![x](javascript:alert(1)) <javascript:alert(1)>",
      "[click][1]\n\n[1]: javascript:alert(1)",
      "](javascript:alert(1)) [",
      "| cell | **bold** _emphasis_ ~~gone~~ $x$",
      "# heading",
      "- item",
      "12. item",
      "=HYPERLINK(\"http://obeyed\",\"x\")",
      "+1+cmd|' /C calc'!A0",
      "-1+cmd|' /C calc'!A0",
      "@SUM(1)",
      "\t=1",
      "\r=1",
      "'=1",
      "naïve ± ² — 数",
      "&#x1; &#x41; &#65; &# &#x",
      "x ]]> y <![CDATA[ z ]]>",
      "U+FFFE \xef\xbf\xbe and U+FFFF \xef\xbf\xbf",
      "reversed \xe2\x80\xae txet \xe2\x80\xac and \xe2\x81\xa6 isolated \xe2\x81\xa9",
      "line \xe2\x80\xa8 and paragraph \xe2\x80\xa9 separators",
  };
  return texts;
}

/// Whether a text holds a byte that a terminal may obey, or a character that reverses text, separates lines
/// or is forbidden in XML. Line feeds and tabs are none.
inline bool commands_terminal(const std::string& text) {
  bool obeyed = false;
  // The last bytes of U+2028 to U+202E, U+2066 to U+2069, U+FFFE and U+FFFF.
  for (const auto& [start, lasts] :
       {std::pair<std::string, std::string>("\xe2\x80", "\xa8\xa9\xaa\xab\xac\xad\xae"),
        std::pair<std::string, std::string>("\xe2\x81", "\xa6\xa7\xa8\xa9"),
        std::pair<std::string, std::string>("\xef\xbf", "\xbe\xbf")})
    for (const char last : lasts) obeyed = obeyed || text.find(start + last) != std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    obeyed = obeyed || (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7F || is_c1;
  }
  return obeyed;
}

}  // namespace moelab
