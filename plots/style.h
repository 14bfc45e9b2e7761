#pragma once

/// Colours, markers and dashes of the series of a figure.

#include <array>
#include <cstddef>

namespace moelab {

/// Okabe and Ito's palette, told apart by every common kind of colour vision; its yellow is too faint on
/// white.
inline constexpr std::array<const char*, 7> kColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                        "E69F00", "56B4E9", "000000"};
/// Of points and areas, above which black is drawn: violet in its place, as on the page of the report.
inline constexpr std::array<const char*, 7> kAreaColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                            "E69F00", "56B4E9", "8C6BB1"};
/// gnuplot's circle, square, triangles, diamond, pentagon, filled then open.
inline constexpr std::array<int, 12> kMarkers = {7, 5, 9, 13, 11, 15, 6, 4, 8, 12, 10, 14};
inline constexpr std::array<const char*, 6> kDashes = {"1",          "(12,4)", "(4,3)",
                                                       "(12,3,3,3)", "(20,4)", "(2,2)"};
/// Thin lines of single seeds are legible below this count (the contract's rule).
inline constexpr std::size_t kSeedLinesBelow = 10;
/// Of markers on lines, gnuplot's `ps`: told apart at the width of a printed column.
inline constexpr double kMarkerSize = 0.58;
inline constexpr const char* kReferenceColour = "555555";

struct Style {
  const char* colour;
  int marker;
  const char* dash;
};

constexpr Style style_of(std::size_t index) {
  return {kColours[index % kColours.size()], kMarkers[index % kMarkers.size()],
          kDashes[index % kDashes.size()]};
}

}  // namespace moelab
