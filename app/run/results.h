#pragma once

/// The results of a run directory, as recorded so far.

#include <filesystem>

#include "analysis/stats/result_table.h"
#include "sim/base/json.h"

namespace moelab {

/// What `plan.json` and the journals of a run directory say.
struct RunResults {
  Json plan;  ///< {"name", "title", "source", "profile", "scenario", "claims", "figures", "cells": [...]}
  ResultTable table;  ///< every planned cell, `missing` where no journal holds it
};

/// Throws UserError when `directory` holds no plan.
RunResults load_results(const std::filesystem::path& directory);

}  // namespace moelab
