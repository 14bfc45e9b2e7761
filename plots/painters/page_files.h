#pragma once

namespace moelab {

/// The texts of plots/painters/page.css and page.js. packages/embed.cmake writes them into the program.
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace moelab
