#pragma once

#include <string>

#include "app/run/results.h"

namespace moelab {

/// The tables of rate_tables(), each under its caption, as Markdown; empty where the plan has no figure of
/// rates.
std::string rates_markdown(const RunResults& results);

}  // namespace moelab
