#include "plots/drawing.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "plots/gnuplot.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  if (!stream)
    throw EnvironmentError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

/// Viewers blur the cells of a small picture that they enlarge, unless they are told not to.
void keep_images_sharp(const std::filesystem::path& svg) {
  std::ostringstream content;
  content << std::ifstream(svg, std::ios::binary).rdbuf();
  std::string text = content.str();
  const std::string image = "<image ", sharp = "<image style='image-rendering:pixelated' ";
  bool has_any = false;
  for (std::size_t at = text.find(image); at != std::string::npos; at = text.find(image, at + sharp.size())) {
    text.replace(at, image.size(), sharp);
    has_any = true;
  }
  if (has_any) write_text(svg, text);
}

}  // namespace

std::vector<std::filesystem::path> render(const Drawing& drawing, const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    throw EnvironmentError(fmt::format("cannot create {}: {}", directory.string(), failure.message()));
  write_text(directory / (drawing.id + ".csv"), drawing.csv);
  write_text(directory / (drawing.id + ".gp"), drawing.script);
  run_gnuplot(directory, drawing.id + ".gp");
  keep_images_sharp(directory / (drawing.id + ".svg"));
  std::vector<std::filesystem::path> paths;
  for (const char* ending : {".csv", ".gp", ".svg", ".pdf", ".png"})
    paths.push_back(directory / (drawing.id + ending));
  return paths;
}

}  // namespace moelab
