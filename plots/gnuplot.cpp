#include "plots/gnuplot.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>

#include "plots/figure.h"
#include "sim/base/error.h"

extern char** environ;  // NOLINT: POSIX asks programs to declare it

namespace moelab {
namespace {

void require(int status, const char* what) {
  if (status != 0) throw EnvironmentError(fmt::format("gnuplot: {}: {}", what, std::strerror(status)));
}

/// Everything that can be read until the other end closes.
std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

/// Starts gnuplot with its error stream on `errors`; an errno value, 0 on success.
int spawn_gnuplot(const std::filesystem::path& directory, const std::string& script, int errors,
                  pid_t& process) {
  posix_spawn_file_actions_t actions;
  require(posix_spawn_file_actions_init(&actions), "cannot prepare");
  int status = posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  if (status == 0)
    status = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (status == 0)
    status = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (status == 0) status = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  // -d: the user's start-up files do not change the figures.
  std::string program = "gnuplot", defaults = "-d", file = script;
  std::array<char*, 4> arguments = {program.data(), defaults.data(), file.data(), nullptr};
  // A figure that outgrows the limit of files ends gnuplot: it would not tell of the rest that is lost.
  posix_spawnattr_t attributes;
  sigset_t defaults_of;
  sigemptyset(&defaults_of);
  sigaddset(&defaults_of, SIGXFSZ);
  require(posix_spawnattr_init(&attributes), "cannot prepare");
  posix_spawnattr_setsigdefault(&attributes, &defaults_of);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (status == 0)
    status = posix_spawnp(&process, "gnuplot", &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

}  // namespace

void run_gnuplot(const std::filesystem::path& directory, const std::string& script) {
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) require(errno, "cannot open a pipe");
  pid_t process = 0;
  const int status = spawn_gnuplot(directory, script, errors[1], process);
  close(errors[1]);
  if (status != 0) {
    close(errors[0]);
    if (status == ENOENT && std::filesystem::is_directory(directory))
      throw EnvironmentError(
          "gnuplot is not installed or not on the PATH; figures need it (Debian: gnuplot-nox)");
    require(status, "cannot be started");
  }
  const std::string message = read_all(errors[0]);
  close(errors[0]);
  int result = 0;
  while (waitpid(process, &result, 0) < 0)
    if (errno != EINTR) require(errno, "cannot be waited for");
  if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
    throw EnvironmentError(fmt::format("gnuplot failed on {}: {}", script, message));
}

namespace {

bool is_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && after == end;
}

/// No formula to a spreadsheet, no command to a terminal.
std::string harmless(std::string_view text) {
  constexpr std::string_view kFormulaSigns = "=+-@\t\r'";
  const bool is_formula =
      !text.empty() && kFormulaSigns.find(text.front()) != std::string_view::npos && !is_number(text);
  return (is_formula ? "'" : "") + visible_text(text);
}

}  // namespace

std::string csv_cell(std::string_view text) {
  const std::string plain = harmless(text);
  if (plain.find_first_of(",\"\n") == std::string::npos) return plain;
  std::string quoted = "\"";
  for (const char letter : plain) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + '"';
}

std::string gnuplot_csv_cell(std::string_view text) {
  std::string plain = visible_line(harmless(text));
  std::replace(plain.begin(), plain.end(), '"', '\'');
  return "\"" + plain + "\"";
}

namespace {

constexpr std::size_t kMarkersPerSeries = 12;

std::optional<double> seed_value(const FigurePoint& point, std::size_t seed) {
  return seed < point.seeds.size() ? point.seeds[seed] : std::nullopt;
}

/// [first, last] rows of the CSV between which every point has a value that the axes can show.
using Run = std::pair<std::size_t, std::size_t>;

template <class Value>
std::vector<Run> runs(const Figure& figure, const FigureSeries& series, std::size_t first_row, Value value) {
  std::vector<Run> found;
  bool open = false;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const std::optional<double> y = value(series.points[i]);
    const double x = series.points[i].x;
    const bool shown = y && std::isfinite(*y) && !(figure.y_log && *y <= 0) && !(figure.x_log && x <= 0) &&
                       is_within(x, figure.x_range);
    if (shown && open) found.back().second = first_row + i;
    if (shown && !open) found.emplace_back(first_row + i, first_row + i);
    open = shown;
  }
  return found;
}

/// The same marker without its filling.
int open_marker(int marker) {
  return marker == 5 || marker == 7 || marker == 9 || marker == 11 || marker == 13 || marker == 15
             ? marker - 1
             : marker;
}

/// The clauses of `plot` for one panel, bands below thin lines below means. `x` is the column of x.
class Clauses {
 public:
  Clauses(const Figure& figure, const FigureLayout& layout) : figure_(figure), layout_(layout) {}

  void add(const FigureSeries& series, std::size_t first_row) {
    const LegendEntry& look = layout_.look_of(series.name);
    first_row_ = first_row;
    const int x = x_column();
    if (series.look != SeriesLook::reference) add_bands(series, look);
    if (has_seed_lines(series)) {
      for (std::size_t seed = 0; seed < seeds_of(series); ++seed)
        for (const Run& run : shown(series, [&](const FigurePoint& p) { return seed_value(p, seed); }))
          if (run.first != run.second)
            thin_.push_back(clause(run, fmt::format("{}:{} with lines lw 0.4 lc rgb '#90{}'", x,
                                                    x + 4 + static_cast<int>(seed), look.colour)));
    }
    const auto means = shown(series, [](const FigurePoint& p) { return p.mean; });
    if (series.look == SeriesLook::reference) {
      for (const Run& run : means)
        means_.push_back(clause(
            run, fmt::format("{}:{} with lines lw 1 dt {} lc rgb '#{}'", x, x + 1, look.dash, look.colour)));
      return;
    }
    // Where no line joins them each mark is a point of its own: none may be missing.
    const std::size_t interval =
        series.look == SeriesLook::line
            ? std::max<std::size_t>((series.points.size() + kMarkersPerSeries - 1) / kMarkersPerSeries, 1)
            : 1;
    if (series.look == SeriesLook::line)
      for (const Run& run : means)
        means_.push_back(clause(run, fmt::format("{}:{} with lines lw 1.3 dt {} lc rgb '#{}'", x, x + 1,
                                                 look.dash, look.colour)));
    for (const bool censored : {false, true})
      for (const Run& run : shown(
               series, [&](const FigurePoint& p) { return p.censored == censored ? p.mean : std::nullopt; }))
        means_.push_back(
            clause(run,
                   fmt::format("{}:{} with points lw 1.3 pt {} ps {} lc rgb '#{}'", x, x + 1,
                               censored ? open_marker(look.marker) : look.marker, kMarkerSize, look.colour),
                   censored || interval == 1 ? "" : std::to_string(interval)));
  }

  std::string plot() const {
    std::vector<std::string> all = bands_;
    all.insert(all.end(), thin_.begin(), thin_.end());
    all.insert(all.end(), means_.begin(), means_.end());
    // Without any value gnuplot still needs something to plot.
    if (all.empty()) all.emplace_back("NaN notitle");
    std::string text = "plot ";
    for (std::size_t i = 0; i < all.size(); ++i) text += (i ? ", \\\n     " : "") + all[i];
    return text;
  }

 private:
  int x_column() const { return figure_.panels.size() > 1 ? 3 : 2; }

  /// `step`: every so many rows of the run.
  static std::string clause(const Run& run, const std::string& how, const std::string& step = "") {
    return fmt::format("data every {}::{}::{} using {} notitle", step, run.first, run.second, how);
  }

  template <class Value>
  std::vector<Run> shown(const FigureSeries& series, Value value) const {
    return runs(figure_, series, first_row_, value);
  }

  void add_bands(const FigureSeries& series, const LegendEntry& look) {
    const int x = x_column();
    // On a logarithmic axis a band that reaches zero ends at the frame.
    const std::string low =
        figure_.y_log ? fmt::format("(column({0})>{1:.8g}?column({0}):{1:.8g})", x + 2, layout_.y.low)
                      : std::to_string(x + 2);
    for (const Run& run : shown(series, [](const FigurePoint& p) { return p.low ? p.high : p.low; })) {
      if (series.look == SeriesLook::marks || run.first == run.second) {
        bands_.push_back(clause(run, fmt::format("{}:{}:{}:{} with yerrorbars pt 0 lw 0.8 lc rgb '#{}'", x,
                                                 x + 1, low, x + 3, look.colour)));
      } else {
        bands_.push_back(clause(run, fmt::format("{}:{}:{} with filledcurves fc rgb '#{}' fs transparent "
                                                 "solid 0.18 noborder",
                                                 x, low, x + 3, look.colour)));
      }
    }
  }

  const Figure& figure_;
  const FigureLayout& layout_;
  std::size_t first_row_ = 0;
  std::vector<std::string> bands_, thin_, means_;
};

}  // namespace

std::string figure_script(const Figure& figure) {
  const FigureLayout page(figure);
  const std::size_t count = std::max<std::size_t>(figure.panels.size(), 1);
  std::string text = script_head(figure.id, figure.title);
  text += fmt::format("data = {}\nset datafile separator comma\nunset key\n", quoted(figure.id + ".csv"));
  text += "set border 3 lw 0.6 lc rgb '#333333'\nset tics nomirror out scale 0.6\n";
  text += "set grid xtics ytics lw 0.4 dt 1 lc rgb '#D9D9D9'\n";
  text += fmt::format("set xtics offset 0,{}\nset ytics offset 0.4,0\n", page.x.upright ? 0.0 : 0.4);
  std::string plot = "set multiplot\n";
  std::size_t first_row = 1;  // row 0 is the header
  for (std::size_t p = 0; p < count; ++p) {
    const double left = page.left(p), low = page.low(p);
    plot += "unset label\nunset arrow\n" + panel_margins(left, left + page.panel_width, low,
                                                         low + page.panel_height, page.width, page.height);
    // The lowest panel of each column has the labels.
    plot +=
        axis_script('x', page.x, p + page.columns >= count) + axis_script('y', page.y, p % page.columns == 0);
    if (count > 1)
      // Just above the panel, however many lines the others have.
      plot += centred_label(
          page.panel_names[p], left + page.panel_width / 2,
          low + page.panel_height + 1 + kLabelLine * static_cast<double>(page.panel_names[p].size()) / 2,
          page.width, page.height);
    if (p == 0) {
      plot += page.heading.script(page.height) + page.legend.script(page.legend_bottom, page.height);
      plot += centred_label(page.x_label, (page.left_margin + page.width - FigureLayout::kRightMargin) / 2,
                            page.x_label_middle, page.width, page.height);
      plot += centred_label(
          page.y_label, 3 + kLabelLine * static_cast<double>(page.y_label.size()) / 2,
          page.bottom + (page.step * static_cast<double>(page.rows) - FigureLayout::kBetween) / 2, page.width,
          page.height, true);
    }
    Clauses clauses(figure, page);
    for (const FigureSeries& series :
         p < figure.panels.size() ? figure.panels[p].series : std::vector<FigureSeries>()) {
      clauses.add(series, first_row);
      first_row += series.points.size();
    }
    plot += clauses.plot() + "\n";
  }
  plot += "unset multiplot";
  return text + on_terminals(figure.id, page.height, plot, page.width);
}

}  // namespace moelab
