#pragma once

/// Runs the gnuplot program.

#include <filesystem>
#include <string>
#include <string_view>

namespace moelab {

/// Runs `gnuplot -d script` with `directory` as its working directory, without a shell; `script` is relative
/// to it. Throws EnvironmentError when the program is missing or fails, with what it wrote to its error
/// stream.
void run_gnuplot(const std::filesystem::path& directory, const std::string& script);

// Texts in tables for programs and spreadsheets.

/// One text as a cell of CSV, the rule of every table that moelab writes: a text that begins with = + - @ or
/// an apostrophe and is no number gets an apostrophe before it, so that no spreadsheet takes it for a
/// formula, and a reader gets the text back by removing one apostrophe. Control characters are written as
/// visible_text writes them, which leaves a line feed and a tab; a tab in the first place gets the
/// apostrophe, too. Quoted by RFC 4180 where it has to be.
std::string csv_cell(std::string_view text);

/// The same for a table that gnuplot reads: always quoted, with single quotes for double ones, which gnuplot
/// misreads when they are doubled, and on one line, since scripts count lines.
std::string gnuplot_csv_cell(std::string_view text);

}  // namespace moelab
