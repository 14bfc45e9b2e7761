#pragma once

/// The style and the script of report pages.

namespace moelab {

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace moelab
