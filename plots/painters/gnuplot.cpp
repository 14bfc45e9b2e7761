#include "plots/painters/gnuplot.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "plots/report/table.h"
#include "plots/texts.h"
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

/// Opens a pipe that other programs do not inherit; −1 with errno where that fails.
int open_pipe(std::array<int, 2>& ends) {
#ifdef __APPLE__  // has no pipe2
  if (pipe(ends.data()) != 0) return -1;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return 0;
#else
  return pipe2(ends.data(), O_CLOEXEC);
#endif
}

}  // namespace

void run_gnuplot(const std::filesystem::path& directory, const std::string& script) {
  std::array<int, 2> errors{};
  if (open_pipe(errors) != 0) require(errno, "cannot open a pipe");
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

std::string quoted(const std::string& text) {
  // gnuplot writes both as they are into an SVG, where they are markup. The joiner has no width.
  constexpr const char* kJoiner = "\u2060";
  std::string line = visible_line(text);
  line = with_replaced(line, "&#", std::string("&") + kJoiner + "#");
  line = with_replaced(line, "]]>", std::string("]]") + kJoiner + ">");
  // Between single quotes nothing is special, but gnuplot misreads a quote at the beginning and two in a row.
  if (line.find('\'') == std::string::npos) return "'" + line + "'";
  std::string result = "\"";
  for (const char letter : line) {
    if (letter == '`') {
      result += "\\140";  // otherwise it would begin a command of the shell
    } else {
      if (letter == '"' || letter == '\\') result += '\\';
      result += letter;
    }
  }
  return result + "\"";
}

namespace {

/// The first lines of a script: what it is, and a clean state.
std::string script_head(const std::string& id, const std::string& title) {
  return fmt::format("# {}\n# Run `gnuplot {}.gp` in this folder.\nreset\nset encoding utf8\n", quoted(title),
                     id);
}

/// Sets the axis `name` ('x' or 'y'): scale, range and ticks, with or without labels.
std::string axis_script(char name, const Axis& axis, bool with_labels) {
  std::string text = axis.logarithmic ? fmt::format("set logscale {}\n", name) : "";
  text += fmt::format("set {0}range [{1:.8g}:{2:.8g}]\nset {0}tics (", name, axis.low, axis.high);
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const auto& [place, label] = axis.ticks[i];
    // The last number is the level: 1 for a minor tick.
    text += fmt::format("{}{} {:.8g} {}", i ? ", " : "", quoted(with_labels ? label : ""), place,
                        label.empty() ? 1 : 0);
  }
  return text + fmt::format(") font ',{}'{}\n", axis.size, axis.upright ? " rotate by 90 right" : "");
}

/// The colour, or one that nobody can tell from it: gnuplot 5.4 joins lines of one colour that follow each
/// other in an SVG to one path, which has the dashes of the last.
std::string unlike(const std::string& colour, const std::string& before) {
  if (colour != before) return colour;
  const unsigned long own = std::stoul(colour, nullptr, 16);
  return fmt::format("{:06X}", (own & 0xFF) == 0xFF ? own - 1 : own + 1);
}

/// The labels and arrows of a panel.
std::string marks_script(const PageMarks& marks, double width, double height) {
  std::string text, colour_before;
  for (const PageMark& mark : marks) {
    const double middle = mark.y / height;
    if (!mark.sample) {
      text += fmt::format("set label {} at screen {:.5f}, screen {:.5f} {}{}{}{}\n", quoted(mark.text),
                          mark.x / width, middle, mark.is_centred ? "center" : "left",
                          mark.rotation == 0    ? ""
                          : mark.rotation == 90 ? " rotate"
                                                : fmt::format(" rotate by {}", mark.rotation),
                          mark.size == kFontSize ? "" : fmt::format(" font ',{}'", mark.size),
                          mark.colour.empty() ? "" : fmt::format(" tc rgb '#{}'", mark.colour));
      continue;
    }
    if (!mark.sample->dash.empty()) {
      colour_before = unlike(mark.sample->colour, colour_before);
      text += fmt::format(
          "set arrow from screen {:.5f}, screen {:.5f} to screen {:.5f}, screen {:.5f} nohead lw 1.3 dt {} "
          "lc rgb '#{}'\n",
          mark.x / width, middle, (mark.x + kSample) / width, middle, mark.sample->dash, colour_before);
    }
    if (mark.sample->marker != 0)
      text += fmt::format(
          "set label '' at screen {:.5f}, screen {:.5f} point pt {} ps {}*mark lc rgb '#{}'\n",
          (mark.x + kSample / 2) / width, middle, mark.sample->marker, kMarkerSize, mark.sample->colour);
  }
  return text;
}

/// The frame of a panel, and a state without labels.
std::string panel_script(const PanelPlace& panel, const PageLayout& page) {
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset bmargin at screen {:.5f}\nset tmargin "
      "at screen {:.5f}\nunset label\nunset arrow\n",
      panel.left / page.width, (panel.left + panel.width) / page.width, panel.bottom / page.height,
      (panel.bottom + panel.height) / page.height);
}

std::string plot_command(const std::vector<std::string>& clauses) {
  // gnuplot needs something to plot.
  if (clauses.empty()) return "plot NaN notitle\n";
  return fmt::format("plot {}\n", fmt::join(clauses, ", \\\n     "));
}

/// How much smaller the unit of marks is on the SVG terminal, and how far labels of ticks are raised, in
/// letters. kSvgFall: less for each letter's height there.
constexpr double kSvgUnit = 1.35, kTickRise = 0.4, kSvgFall = 0.55;

/// The plot commands on the terminals of the style's formats.
std::string on_terminals(const std::string& id, const FigureStyle& style, const PageLayout& page,
                         const std::string& plot) {
  const double width = page.width * page.scale, height = page.height * page.scale;
  const std::vector<std::string> formats = style.format.empty() ? Drawing().formats : style.format;
  // Lines and marks grow with the letters.
  const double size = page.font_scale;
  const std::string strokes = size == 1 ? "" : fmt::format(" linewidth {:.4g}", size);
  // Each terminal's unit is its own: pixels of 1/96 inch, inches, pixels of 1/300 inch. `fontscale` makes
  // points of what each takes a size for, of the sizes that a script gives, too.
  const auto terminal = [&](const std::string& format) {
    if (format == "svg")
      return fmt::format(
          "svg noenhanced size {:.0f},{:.0f} name 'moelab_layout_{}' font '{},{}' fontscale {:.4f}{} "
          "background "
          "rgb 'white'",
          width * 96 / 72, height * 96 / 72, kLayoutVersion, page.font, kFontSize, size * 96.0 / 72, strokes);
    if (format == "png")
      return fmt::format(
          "pngcairo noenhanced size {:.0f},{:.0f} font '{},{}' fontscale {:.4f} linewidth {} dashlength 1.4 "
          "pointscale {} background rgb 'white'",
          width * 300 / 72, height * 300 / 72, page.font, kFontSize, size * 300.0 / 96, 3 * size, 3 * size);
    // The terminal drops what is less than a point.
    constexpr double kWhole = 0.01;
    return fmt::format(
        "pdfcairo noenhanced size {:.4f}in,{:.4f}in font '{},{}' fontscale {} dashlength 1.5{}",
        (std::round(width) + kWhole) / 72, (std::round(height) + kWhole) / 72, page.font, kFontSize,
        size * 72.0 / 96, strokes);
  };
  // Only PNG has a scale of marks. In SVG, larger letters come closer to their axis.
  const auto places = [&](const std::string& format) {
    const bool is_svg = format == "svg";
    return fmt::format("mark = {:.4g}\nrise = {:.4g}\n",
                       is_svg            ? kSvgUnit * size
                       : format == "pdf" ? size
                                         : 1,
                       is_svg ? kTickRise - kSvgFall * (size - 1) : kTickRise);
  };
  std::string script;
  for (const std::string& format : formats)
    script += fmt::format("\nset terminal {}\nset output {}\n{}{}\n", terminal(format),
                          quoted(id + "." + format), places(format), plot);
  return script + "set output\n";
}

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

/// The clauses of `plot` for one panel of lines: bands, then thin lines, then means.
class LineClauses {
 public:
  LineClauses(const Figure& figure, const FigureLayout& layout) : figure_(figure), layout_(layout) {}

  void add(const FigureSeries& series, std::size_t first_row) {
    const SeriesStyle& look = layout_.look_of(series.name);
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
    const std::size_t interval = marker_step(series);
    if (series.look == SeriesLook::line)
      for (const Run& run : means)
        means_.push_back(clause(run, fmt::format("{}:{} with lines lw 1.3 dt {} lc rgb '#{}'", x, x + 1,
                                                 look.dash, look.colour)));
    for (const bool censored : {false, true})
      for (const Run& run : shown(
               series, [&](const FigurePoint& p) { return p.censored == censored ? p.mean : std::nullopt; }))
        means_.push_back(
            clause(run,
                   fmt::format("{}:{} with points lw 1.3 pt {} ps {}*mark lc rgb '#{}'", x, x + 1,
                               censored ? open_marker(look.marker) : look.marker, kMarkerSize, look.colour),
                   censored || interval == 1 ? "" : std::to_string(interval)));
  }

  std::string plot() const {
    std::vector<std::string> all = bands_;
    all.insert(all.end(), thin_.begin(), thin_.end());
    all.insert(all.end(), means_.begin(), means_.end());
    return plot_command(all);
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

  void add_bands(const FigureSeries& series, const SeriesStyle& look) {
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

std::string gnuplot_script(const Figure& figure) {
  const FigureLayout page(figure);
  std::string text = script_head(figure.id, figure.title);
  text += fmt::format("data = {}\nset datafile separator comma\nunset key\n", quoted(figure.id + ".csv"));
  text += "set border 3 lw 0.6 lc rgb '#333333'\nset tics nomirror out scale 0.6\n";
  text += "set grid xtics ytics lw 0.4 dt 1 lc rgb '#D9D9D9'\n";
  std::string plot = fmt::format("set xtics offset 0,{}\nset ytics offset 0.4,0\nset multiplot\n",
                                 page.x.upright ? "0" : "rise");
  std::size_t first_row = 1;  // row 0 is the header
  for (std::size_t p = 0; p < page.panels.size(); ++p) {
    const PanelPlace& panel = page.panels[p];
    plot += panel_script(panel, page) + axis_script('x', page.x, panel.has_x_labels) +
            axis_script('y', page.y, panel.has_y_labels) + marks_script(panel.marks, page.width, page.height);
    LineClauses clauses(figure, page);
    for (const FigureSeries& series :
         p < figure.panels.size() ? figure.panels[p].series : std::vector<FigureSeries>()) {
      clauses.add(series, first_row);
      first_row += series.points.size();
    }
    plot += clauses.plot();
  }
  plot += "unset multiplot";
  return text + on_terminals(figure.id, figure.style, page, plot);
}

namespace {

/// An image of up to so many cells is drawn as boxes, which are sharp in every viewer of SVG. More boxes
/// would make the file large.
constexpr std::size_t kMostBoxes = 2500;
/// More colours would make the file large for no visible gain. The number is odd, so that 0 has its own
/// colour.
constexpr int kColourSteps = 33;

bool is_full(const HeatMap& map) {
  return std::all_of(map.panels.begin(), map.panels.end(), [](const HeatMapPanel& panel) {
    return std::all_of(panel.values.begin(), panel.values.end(),
                       [](const auto& value) { return value.has_value(); });
  });
}

std::string palette_text(const HeatMapLayout& page) {
  std::vector<std::string> stops;
  for (std::size_t i = 0; i < page.palette.size(); ++i)
    stops.push_back(fmt::format("{} '{}'", i, page.palette[i]));
  return fmt::format("{}", fmt::join(stops, ", "));
}

/// Names at columns or rows.
std::string names_script(const Axis& axis) {
  std::vector<std::string> names;
  for (const auto& [place, name] : axis.ticks) names.push_back(fmt::format("{} {}", quoted(name), place));
  return fmt::format("nomirror scale 0,0 ({}) font ',{}'\n", fmt::join(names, ", "), axis.size);
}

/// Functions of gnuplot's language that look up how numbers and halves of intervals are written.
std::string number_functions(const HeatMap& map, int digits) {
  std::map<double, std::string> numbers, halves;
  for (const HeatMapPanel& panel : map.panels)
    for (std::size_t i = 0; i < panel.values.size(); ++i) {
      if (panel.values[i]) numbers[*panel.values[i]] = cell_number(*panel.values[i], digits);
      if (i >= panel.intervals.size() || !panel.intervals[i]) continue;
      const auto [low, high] = *panel.intervals[i];
      numbers[low] = cell_number(low, digits);
      numbers[high] = cell_number(high, digits);
      halves[(high - low) / 2] = half_number((high - low) / 2);
    }
  const auto list = [](const std::map<double, std::string>& texts) {
    std::string entries = "|";
    for (const auto& [value, text] : texts) entries += fmt::format("{:.17g}={}|", value, text);
    return entries;
  };
  return fmt::format(
      "moelab_numbers = '{}'\nmoelab_halves = '{}'\n"
      "moelab_text(list, v) = (key = sprintf('|%.17g=', v), at = strstrt(list, key), "
      "rest = at > 0 ? list[at + strlen(key):*] : '|', rest[1:strstrt(rest, '|') - 1])\n"
      "moelab_signed(t) = t[1:1] eq '-' ? '−'.t[2:*] : t\n"
      "moelab_number(v) = moelab_signed(moelab_text(moelab_numbers, v))\n"
      "moelab_half(v) = moelab_text(moelab_halves, v)\n",
      list(numbers), list(halves));
}

/// The command that colours the cells of a panel and writes their numbers. `first`: the panel's first row in
/// the CSV.
std::string cells_script(const HeatMap& map, const HeatMapLayout& page, std::size_t first) {
  const std::size_t columns = map.x_names.size(), rows = map.y_names.size();
  // The place of a cell follows from its row in the file, whose names are for people.
  const std::string x = fmt::format("(int($0)%{})", columns), y = fmt::format("(int($0)/{})", columns);
  const std::string range = fmt::format("data every ::{}::{} using ", first, first + columns * rows - 1);
  if (map.compact && is_full(map)) {
    // Viewers of SVG blur images, so cells are boxes there. Other viewers draw fine gaps between boxes.
    const bool is_large = columns * rows * map.panels.size() > kMostBoxes;
    return fmt::format("cells = GPVAL_TERM eq 'svg' ? 'image{}' : 'image'\nplot {}{}:{}:4 with @cells\n",
                       is_large ? "" : " pixels", range, x, y);
  }
  std::vector<std::string> clauses = {fmt::format(
      "{0}{1}:{2}:({1}-0.5):({1}+0.5):({2}-0.5):({2}+0.5):4 with boxxyerror fc palette fs solid 1 "
      "noborder",
      range, x, y)};
  if (!page.has_numbers) return plot_command(clauses);
  // gnuplot 5.4 crashes on a clause without any defined point, so that absent labels are empty.
  const auto add = [&](const std::string& condition, const std::string& label, double rise, double size,
                       const char* colour) {
    clauses.push_back(fmt::format("{}{}:({}+{}):({} ? {} : '') with labels font ',{}' tc rgb '{}'", range, x,
                                  y, rise, condition, label, size, colour));
  };
  const std::string over =
      has_censored_cells(map) ? fmt::format("(${} > 0 ? '>' : '').", has_intervals(map) ? 7 : 5) : "";
  const char* const interval =
      page.is_symmetric ? "'±'.moelab_half(($6-$5)/2)" : "moelab_number($5).'–'.moelab_number($6)";
  for (const auto& [side, colour] : {std::pair{"!", "#FFFFFF"}, {"", "#000000"}}) {
    const std::string condition =
        fmt::format("valid(4) && {}($4>={:.8g} && $4<={:.8g})", side, page.bright_from, page.bright_to);
    add(condition, over + "moelab_number($4)", page.has_intervals ? kNumberRise : 0.0, kNumberSize, colour);
    if (page.has_intervals)
      add(condition + " && valid(5) && $6>$5", interval, kIntervalRise, kIntervalSize, colour);
  }
  return plot_command(clauses);
}

}  // namespace

std::string gnuplot_script(const HeatMap& map) {
  const HeatMapLayout page(map);
  std::string text = script_head(map.id, map.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(map.id + ".csv"));
  text += "set border 0\nset tics scale 0,0 nomirror\nunset key\n";
  text += "set object rectangle from graph 0,0 to graph 1,1 behind fc rgb '#D9D9D9' fs solid noborder\n";
  text +=
      fmt::format("set palette defined ({})\nset palette maxcolors {}\n", palette_text(page), kColourSteps);
  text += fmt::format("set cbrange [{:.8g}:{:.8g}]\nset cbtics scale 0.4 (", page.low, page.high);
  for (std::size_t i = 0; i < page.scale_ticks.size(); ++i)
    text += fmt::format("{}{} {:.8g}", i ? ", " : "", quoted(page.scale_ticks[i].second),
                        page.scale_ticks[i].first);
  text += fmt::format(") font ',{}'\n", kTickFontSize);
  text += fmt::format("set xrange [{}:{}]\nset yrange [{}:{}]\n", page.x.low, page.x.high, page.y.low,
                      page.y.high);
  if (page.has_numbers) text += number_functions(map, page.digits);
  const std::string x_names = names_script(page.x), y_names = names_script(page.y);
  std::string plot = "set multiplot\n";
  for (std::size_t p = 0; p < page.panels.size(); ++p) {
    const PanelPlace& panel = page.panels[p];
    plot += panel_script(panel, page) + marks_script(panel.marks, page.width, page.height);
    plot += panel.has_y_labels ? "set ytics " + y_names : "unset ytics\n";
    plot += panel.has_x_labels ? "set xtics offset 0,rise " + x_names : "unset xtics\n";
    plot += p + 1 < page.panels.size()
                ? "unset colorbox\n"
                : fmt::format(
                      "set colorbox user origin screen {:.5f}, screen {:.5f} size screen {:.5f}, "
                      "screen {:.5f}\n",
                      page.scale_left / page.width, page.scale_bottom / page.height, kScaleWidth / page.width,
                      page.scale_height / page.height);
    // Row 0 of the CSV is its header.
    plot += cells_script(map, page, 1 + p * map.x_names.size() * map.y_names.size());
  }
  plot += "unset multiplot";
  return text + on_terminals(map.id, map.style, page, plot);
}

std::string gnuplot_script(const RatePanels& figure) {
  const RateLayout page(figure);
  std::string text = script_head(figure.id, figure.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(figure.id + ".csv"));
  text += "set samples 2\n";
  std::string plot = "set multiplot\nset border 3 lw 0.6 lc rgb '#333333'\nunset key\n";
  plot += "set tics nomirror out scale 0.6\nset grid xtics ytics lw 0.4 dt 1 lc rgb '#D9D9D9'\n";
  plot += "set xtics nomirror offset 0,rise\nset ytics nomirror offset 0.4,0\n";
  std::size_t first_row = 1;  // row 0 of the CSV is its header
  for (std::size_t p = 0; p < page.panels.size(); ++p) {
    const PanelPlace& panel = page.panels[p];
    plot += panel_script(panel, page) + axis_script('x', page.x, panel.has_x_labels) +
            axis_script('y', page.y, panel.has_y_labels) + marks_script(panel.marks, page.width, page.height);
    std::vector<std::string> clauses;
    for (std::size_t i = 0; i < figure.references.size(); ++i) {
      const double slope = figure.references[i].first;
      clauses.push_back(fmt::format("{:.8g}*(x/{:.8g})**({}) with lines lw 0.8 dt {} lc rgb '#{}' notitle",
                                    page.reference_height, slope > 0 ? page.x.high : page.x.low, slope,
                                    page.references[i].dash, page.references[i].colour));
    }
    for (const RateLine& line : figure.panels[p]) {
      const std::string range =
          fmt::format("data every ::{}::{} using ", first_row, first_row + line.points.size() - 1);
      first_row += line.points.size();
      if (line.points.empty()) continue;
      const SeriesStyle& look = page.look_of(line.name);
      clauses.push_back(fmt::format("{}4:8 with lines lw 1.2 lc rgb '#{}' notitle", range, look.colour));
      clauses.push_back(fmt::format("{}4:6:(0):($7-$6) with vectors nohead lw 0.8 lc rgb '#{}' notitle",
                                    range, look.colour));
      clauses.push_back(fmt::format("{}4:5 with points lw 0.8 pt {} ps 0.5*mark lc rgb '#{}' notitle", range,
                                    look.marker, look.colour));
    }
    plot += plot_command(clauses);
  }
  plot += "unset multiplot";
  return text + on_terminals(figure.id, figure.style, page, plot);
}

namespace {

/// gnuplot's `ps` of points, ends of rows and means. Many points are smaller.
constexpr double kPointSize = 0.26, kManyPointSize = 0.18, kHeadSize = 0.42, kCrossSize = 0.42;
constexpr std::size_t kManyPoints = 500;

/// One row for each part of a panel, in the order in which embedding_csv writes them.
struct PanelRows {
  std::size_t region, point, mean, arrow, end;

  PanelRows(const EmbeddingPanel& panel, std::size_t first)
      : region(first),
        point(region + panel.regions.size()),
        mean(point + panel.points.size()),
        arrow(mean + panel.means.size()),
        end(arrow + panel.arrows.size()) {}
};

/// The looks of points or regions in order, grey first.
template <class Shown>
std::set<int> looks_of(const std::vector<Shown>& shown) {
  std::set<int> looks;
  for (const Shown& one : shown) looks.insert(one.colour);
  return looks;
}

/// The clauses of `plot` for one panel.
std::string plane_script(const EmbeddingPanel& panel, const PanelRows& rows) {
  std::vector<std::string> clauses;
  const auto add = [&](std::size_t first, std::size_t end, const std::string& how) {
    if (end > first) clauses.push_back(fmt::format("data every ::{}::{} using {}", first, end - 1, how));
  };
  for (const int colour : looks_of(panel.regions))
    add(rows.region, rows.point,
        fmt::format("($6=={0} ? $3 : NaN):4:3:7:4:8 with boxxyerror lw 0.2 fc rgb '#{1}' fs solid 1 border "
                    "lc rgb '#{1}'",
                    colour, pale_area_colour(colour)));
  for (const int colour : looks_of(panel.points))
    add(rows.point, rows.mean,
        fmt::format("3:($6=={} ? $4 : NaN) with points pt {} ps dot_size lc rgb '#{}'", colour,
                    area_marker(colour), area_colour(colour)));
  add(rows.arrow, rows.end, "(0):(0):($6<0 ? NaN : $3):4 with vectors nohead lw 0.8 lc rgb '#000000'");
  for (const int colour : looks_of(panel.arrows))
    if (colour >= 0)
      add(rows.arrow, rows.end,
          fmt::format("3:($6=={} ? $4 : NaN) with points pt {} ps head_size lc rgb '#{}'", colour,
                      area_marker(colour), area_colour(colour)));
  add(rows.mean, rows.arrow, "3:4 with points pt 2 ps cross_size lw 1.2 lc rgb '#000000'");
  return plot_command(clauses);
}

}  // namespace

std::string gnuplot_script(const Embedding& embedding) {
  const EmbeddingLayout page(embedding);
  std::string text = script_head(embedding.id, embedding.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(embedding.id + ".csv"));
  text += "set border 15 lw 0.6 lc rgb '#999999'\nunset tics\nunset key\n";
  text += fmt::format("set xrange [{:.6g}:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\n", page.x.low, page.x.high,
                      page.y.low, page.y.high);
  std::size_t most_points = 0;
  for (const EmbeddingPanel& panel : embedding.panels)
    most_points = std::max(most_points, panel.points.size());
  std::string plot =
      fmt::format("dot_size = {} * mark\nhead_size = {} * mark\ncross_size = {} * mark\nset multiplot\n",
                  most_points > kManyPoints ? kManyPointSize : kPointSize, kHeadSize, kCrossSize);
  std::size_t first = 1;  // row 0 of the CSV is its header
  for (std::size_t p = 0; p < page.panels.size(); ++p) {
    const PanelRows rows(embedding.panels[p], first);
    plot += panel_script(page.panels[p], page) + marks_script(page.panels[p].marks, page.width, page.height) +
            plane_script(embedding.panels[p], rows);
    first = rows.end;
  }
  plot += "unset multiplot";
  return text + on_terminals(embedding.id, embedding.style, page, plot);
}

std::string gnuplot_script(const Forest& forest) {
  const ForestLayout page(forest);
  std::string text = script_head(forest.id, forest.title);
  text += "set border 1 lw 0.6 lc rgb '#333333'\nset tics nomirror out scale 0.6\nunset key\n";
  text += "set grid xtics lw 0.4 dt 1 lc rgb '#D9D9D9'\n";
  std::string plot = "set xtics offset 0,rise\nset multiplot\n";
  const auto line = [](double from_x, double from_y, double to_x, double to_y, const std::string& how) {
    return fmt::format("set arrow from first {:.8g}, first {:.8g} to first {:.8g}, first {:.8g} {}\n", from_x,
                       from_y, to_x, to_y, how);
  };
  for (std::size_t p = 0; p < page.panels.size(); ++p) {
    const PanelPlace& panel = page.panels[p];
    const Axis& y = page.y_of(panel);
    plot += "unset logscale\n" + panel_script(panel, page) + axis_script('x', page.x_of(panel), true) +
            fmt::format("set yrange [0:{}]\nunset ytics\n", y.high) +
            marks_script(panel.marks, page.width, page.height);
    const double none = forest.panels[p].no_effect;
    plot += line(none, 0, none, y.high,
                 fmt::format("nohead lw 0.8 dt {} lc rgb '#{}'", kNoEffectDash, kReferenceColour));
    std::string before;
    for (const ForestMark& mark : page.marks[p]) {
      before = unlike(mark.look.colour, before);
      for (const double limit : mark.limits)
        plot += line(limit, mark.place - 0.4, limit, mark.place + 0.4,
                     fmt::format("nohead lw 0.8 dt {} lc rgb '#{}'", kLimitDash, kReferenceColour));
      const std::string heads = mark.leaves_low && mark.leaves_high ? "heads"
                                : mark.leaves_high                  ? "head"
                                : mark.leaves_low                   ? "backhead"
                                                                    : "nohead";
      if (mark.low && mark.high)
        plot += line(*mark.low, mark.place, *mark.high, mark.place,
                     fmt::format("{} size screen 0.012,25 lw 1.2 lc rgb '#{}'", heads, before));
      if (mark.mean)
        plot +=
            fmt::format("set label '' at first {:.8g}, first {:.8g} point pt {} ps 0.55*mark lc rgb '#{}'\n",
                        *mark.mean, mark.place, mark.look.marker, mark.look.colour);
    }
    plot += plot_command({});
  }
  plot += "unset multiplot";
  return text + on_terminals(forest.id, forest.style, page, plot);
}

namespace {

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  if (!stream)
    throw EnvironmentError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

/// Viewers blur the cells of a small picture that they enlarge, unless an attribute forbids it.
void keep_images_sharp(const std::filesystem::path& svg) {
  std::ostringstream content;
  content << std::ifstream(svg, std::ios::binary).rdbuf();
  const std::string text = content.str();
  const std::string sharp = with_replaced(text, "<image ", "<image style='image-rendering:pixelated' ");
  if (sharp != text) write_text(svg, sharp);
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
  std::vector<std::string> endings = {"csv", "gp"};
  endings.insert(endings.end(), drawing.formats.begin(), drawing.formats.end());
  const auto file = [&](const std::string& ending) { return directory / (drawing.id + "." + ending); };
  if (std::filesystem::exists(file("svg"))) keep_images_sharp(file("svg"));
  if (!drawing.caption_file.empty()) {
    write_text(file("tex"), latex_caption(drawing.caption_file, drawing.id));
    write_text(file("txt"), drawing.caption_file + "\n");
    endings.insert(endings.end(), {"tex", "txt"});
  }
  std::vector<std::filesystem::path> paths;
  for (const std::string& ending : endings) paths.push_back(file(ending));
  return paths;
}

namespace {

using ScriptJson = nlohmann::ordered_json;

/// Numbers of a figure of lines on the page: about 400 kB.
constexpr std::size_t kMostNumbers = 8000;

/// Data for the page's script.
std::string page_data(const ScriptJson& data) {
  return "<script type=\"application/json\">" +
         script_text(data.dump(-1, ' ', false, ScriptJson::error_handler_t::replace)) + "</script>";
}

}  // namespace

namespace {

/// A figure as files in its style, with the full caption of its layout.
template <class Shown>
Drawing styled_drawing(const Shown& figure, const std::string& caption, std::string csv, std::string html) {
  Drawing drawing{figure.id,      figure.title,           figure.caption,
                  std::move(csv), gnuplot_script(figure), std::move(html)};
  if (!figure.style.format.empty()) drawing.formats = figure.style.format;
  if (figure.style.caption != CaptionPlace::file) return drawing;
  // The caption says what the page does not.
  const bool has_title = figure.style.title.value_or(true) || figure.title.empty();
  drawing.caption_file =
      (has_title ? "" : figure.title + (figure.title.ends_with('.') ? " " : ". ")) + caption;
  return drawing;
}

}  // namespace

Drawing drawing_of(const Figure& figure) {
  const Figure shown = thinned(figure, kMostNumbers);
  Drawing drawing =
      styled_drawing(figure, FigureLayout(figure).caption, figure_csv(figure), page_data(page_json(shown)));
  drawing.note = shown.caption.substr(figure.caption.size());
  return drawing;
}

Drawing drawing_of(const HeatMap& map) {
  return styled_drawing(map, HeatMapLayout(map).caption, heat_map_csv(map), page_data(page_json(map)));
}

Drawing drawing_of(const RatePanels& figure) {
  return styled_drawing(figure, RateLayout(figure).caption, rate_panels_csv(figure),
                        page_data(page_json(figure)));
}

Drawing drawing_of(const Embedding& embedding) {
  const ScriptJson page = page_json(embedding);
  return styled_drawing(embedding, EmbeddingLayout(embedding).caption, embedding_csv(embedding),
                        page.is_null() ? "" : page_data(page));
}

Drawing drawing_of(const Forest& forest) {
  Drawing drawing =
      styled_drawing(forest, ForestLayout(forest).caption, forest.csv, page_data(page_json(forest)));
  // The page says below the figure what its rows leave out.
  drawing.caption = ForestLayout(forest, ForestLayout::Texts::axes).caption;
  return drawing;
}

}  // namespace moelab
