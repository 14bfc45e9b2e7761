#pragma once

/// The style and the script of report pages.

namespace moelab {

extern const char* const kReportStyle;
/// The script in three parts, which stand after each other: what draws lines, what draws heat maps and planes
/// with decision regions, what goes through the figures.
extern const char* const kReportScript;
extern const char* const kMapScript;
extern const char* const kReportScriptEnd;

}  // namespace moelab
