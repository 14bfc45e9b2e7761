/// The report in a real browser, Debian's chromium without a window: packages/browser.txt. Where there is
/// none, the test says so and ctest counts it as skipped.

#include <doctest/doctest.h>

#include <algorithm>

#include "app/scenario/json.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"
#include "tests/system/process.h"

namespace moelab::browser_test {
namespace {

namespace fs = std::filesystem;

/// Collects errors from the first line of the page on.
constexpr const char* kListen =
    "<script>window.problems = [];"
    "addEventListener('error', (event) => window.problems.push(event.message), true);</script>";

/// What a reader does: look at every figure, switch a series off and on, point at a mark and leave it.
constexpr const char* kProbe = R"js(<pre id="probe"></pre><script>
(() => {
  const figures = [...document.querySelectorAll("figure")];
  const seen = figures.map((f) => ({
    title: f.querySelector(".figure-title").textContent,
    marks: f.querySelectorAll("svg circle, svg rect").length,
    picture: f.querySelector("img") !== null,
  }));
  const lines = figures.find((f) => f.querySelector(".legend button"));
  const marks = () => lines.querySelectorAll("svg circle").length;
  const button = lines.querySelector(".legend button");
  const toggled = [marks()];
  button.click();
  toggled.push(marks());
  const pressed = button.getAttribute("aria-pressed");
  button.click();
  toggled.push(marks());
  const pointAt = (node) => {
    const area = node.getBoundingClientRect();
    const place = { clientX: area.x + area.width / 2, clientY: area.y + area.height / 2, bubbles: true };
    node.dispatchEvent(new PointerEvent("pointermove", place));
  };
  const tip = lines.querySelector(".tip");
  pointAt(lines.querySelector("svg circle"));
  const shown = tip.hidden ? "" : tip.textContent;
  lines.querySelector("svg").dispatchEvent(new PointerEvent("pointerleave"));
  // The keyboard: arrows go from mark to mark, Escape leaves them.
  const press = (node, key) => node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const walk = (figure, key) => {
    const canvas = figure.querySelector("svg[tabindex]"), told = figure.querySelector(".tip");
    canvas.focus();
    const texts = [0, 1].map(() => { press(canvas, key); return told.textContent; });
    const isFocused = document.activeElement === canvas, isShown = !told.hidden;
    press(canvas, "Escape");
    return { texts, isFocused, isShown, leaves: told.hidden, role: canvas.getAttribute("role"), says: told.getAttribute("role") };
  };
  const keyboard = [walk(lines, "ArrowRight"), walk(document.querySelector(".answer figure"), "ArrowDown")];
  const unnamed = [...document.querySelectorAll("svg[tabindex], svg[role=img], input, button, img")]
    .filter((n) => !(n.getAttribute("aria-label") || n.getAttribute("alt") || n.textContent.trim())).length;
  const map = figures.find((f) => f.querySelector('svg[aria-label="colour scale"]'));
  pointAt(map.querySelector("svg rect"));
  const moving = figures.find((f) => f.querySelector("input[type=range]") && f.querySelector("svg rect"));
  const numbers = () => [...moving.querySelector("svg").querySelectorAll("text[style]")].map((t) => t.textContent).join(" ");
  const steps = moving.querySelector("input[type=range]"), numbersAtEnd = numbers();
  steps.value = 0;
  steps.dispatchEvent(new Event("input"));
  const numbersMove = numbers() !== numbersAtEnd;
  const plane = figures.find((f) => f.querySelector("svg polygon"));
  const slider = plane.querySelector("input[type=range]");
  const regions = () => [...plane.querySelectorAll("svg polygon")].map((p) => p.getAttribute("points")).join();
  // The sliders of all maps move together, so another map's may have moved this one.
  slider.value = slider.max;
  slider.dispatchEvent(new Event("input"));
  const atEnd = regions();
  slider.value = 0;
  slider.dispatchEvent(new Event("input"));
  const atStart = regions(), startName = slider.nextSibling.textContent;
  slider.value = slider.max;
  slider.dispatchEvent(new Event("input"));
  // Convex pieces without gaps: of each region, and of the frame, twice the area.
  const areaOf = (polygon) => {
    const p = [...polygon.points];
    return Math.abs(p.reduce((sum, a, i) => { const b = p[(i + 1) % p.length]; return sum + a.x * b.y - b.x * a.y; }, 0));
  };
  const frame = [...plane.querySelectorAll("svg > rect")][0];
  const covered = [...plane.querySelector("svg").querySelectorAll("polygon")].reduce((sum, p) => sum + areaOf(p), 0)
    / (2 * frame.width.baseVal.value * frame.height.baseVal.value);
  pointAt(plane.querySelector("svg polygon"));
  // Numbers that lie on each other, in all maps.
  const overlaps = figures.reduce((sum, figure) => {
    const boxes = [...figure.querySelectorAll("svg text[style]")].map((t) => t.getBoundingClientRect());
    return sum + boxes.filter((a, i) => boxes.some((b, j) => j < i && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)).length;
  }, 0);
  const ticks = [...lines.querySelectorAll("svg text")].map((t) => t.textContent);
  document.body.style.width = "390px";
  document.getElementById("probe").textContent = JSON.stringify({
    problems: window.problems, figures: seen, toggled, pressed, shown, hiddenAfter: tip.hidden,
    numbersMove, plane: { moves: atStart !== atEnd, returns: regions() === atEnd, startName, covered, tip: plane.querySelector(".tip").textContent },
    overlaps, ticks, scales: document.querySelectorAll('svg[aria-label="colour scale"]').length,
    clipped: lines.querySelectorAll("g[clip-path] circle").length,
    keyboard, unnamed, points: document.querySelector(".claim .points").textContent,
    mapShown: map.querySelector(".tip").textContent,
    widest: Math.max(...figures.map((f) => f.getBoundingClientRect().width)),
    outside: performance.getEntriesByType("resource").filter((r) => !r.name.startsWith("data:")).length,
  }).replaceAll("<", " ");
})();
</script>)js";

bool has_chromium(const fs::path& out) {
  const pid_t process = start_program({"sh", "-c", "command -v chromium"}, out);
  return wait_for(process) == 0;
}

Json scenario() {
  Json scenario = tiny();
  scenario["save"] = {"routing", "weights", "routing_steps"};
  scenario["sweep"] = Json::parse(R"({"data.train_samples": [20, 32768], "train.steps": [4, 8]})");
  scenario["claims"] = Json::parse(R"([{"id": "better", "op": "<",
    "left": {"arm": "learned", "metric": "test_loss_soft"}, "right": {"arm": "frozen", "metric": "test_loss_soft"}}])");
  scenario["figures"] = Json::parse(R"([
    {"id": "loss", "title": "Loss & <more>", "x": "data.train_samples", "y": "test_loss_soft",
     "where": {"train.steps": 8}},
    {"id": "map", "kind": "heat_map", "x": "data.train_samples", "y": "train.steps", "value": "test_loss_soft"},
    {"id": "routing", "kind": "cluster_map"}, {"id": "rows", "kind": "cluster_map", "value": "router_rows"},
    {"id": "points", "kind": "embedding"}])");
  return scenario;
}

}  // namespace

TEST_CASE("browser: the report loads from disk without errors, figures are there and answer the reader") {
  const Bench bench(scenario());
  const fs::path folder = bench.folder.path(), out = folder / "out";
  if (!has_chromium(out)) {
    MESSAGE("browser test skipped: chromium is not installed (packages/install test browser)");
    return;
  }
  REQUIRE(call({"run", bench.file, "--out", bench.run}, out) == 0);
  const fs::path page = folder / "report.html";
  REQUIRE(call({"report", bench.run, "--out", page.string()}, out) == 0);
  std::string html = file_text(page);
  html.insert(html.find("<head>") + 6, kListen);
  html.insert(html.rfind("</body>"), kProbe);
  std::ofstream(page) << html;

  REQUIRE(wait_for(start_program(
              {"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000",
               "--user-data-dir=" + (folder / "profile").string(), "--dump-dom", "file://" + page.string()},
              out)) == 0);
  const std::string dom = file_text(out), start = "<pre id=\"probe\">";
  const std::size_t begin = dom.find(start) + start.size();
  const Json found = Json::parse(dom.substr(begin, dom.find("</pre>", begin) - begin), nullptr, false);
  REQUIRE_MESSAGE(found.is_object(), dom.substr(begin, 200));

  CHECK_MESSAGE(found.at("problems").empty(), found.at("problems").dump());
  CHECK(found.at("outside") == 0);
  REQUIRE(found.at("figures").size() == 6);  // one of the claim
  for (const Json& figure : found.at("figures")) {
    CAPTURE(figure.dump());
    CHECK((figure.at("marks") > 0 || figure.at("picture") == true));
  }
  CHECK(found.at("toggled") == Json({4, 2, 4}));  // two arms at two sample counts
  CHECK(found.at("pressed") == "false");
  CHECK(found.at("shown").get<std::string>().starts_with("learned\ntraining samples 20\n"));
  CHECK(found.at("hiddenAfter") == true);
  const std::string on_map = found.at("mapShown").get<std::string>();
  CHECK_MESSAGE(on_map.find("training samples 20") != std::string::npos, on_map);
  CHECK(found.at("overlaps") == 0);
  for (const Json& walk : found.at("keyboard")) {
    CAPTURE(walk.dump());
    CHECK(walk.at("texts")[0] != walk.at("texts")[1]);
    for (const char* what : {"isFocused", "isShown", "leaves"}) CHECK(walk.at(what) == true);
    CHECK(walk.at("role") == "application");
    CHECK(walk.at("says") == "status");
  }
  CHECK(found.at("unnamed") == 0);
  // Tables name places as figures do.
  const std::string points = found.at("points").get<std::string>();
  CHECK_MESSAGE(points.find("samples = 32768") != std::string::npos, points);
  CHECK(points.find("data.train_samples") == std::string::npos);
  CHECK(found.at("scales") == 6);  // beside each panel: two arms in three figures
  CHECK(found.at("clipped") == 4);
  const Json& ticks = found.at("ticks");
  // Ticks are round numbers and never values of the data.
  CHECK_MESSAGE(std::find(ticks.begin(), ticks.end(), "20000") != ticks.end(), ticks.dump());
  CHECK(std::find(ticks.begin(), ticks.end(), "32768") == ticks.end());
  const Json& plane = found.at("plane");
  CHECK(found.at("numbersMove") == true);
  CHECK(plane.at("moves") == true);
  CHECK(plane.at("returns") == true);
  CHECK(plane.at("startName") == " step 0");
  CHECK(plane.at("covered").get<double>() == doctest::Approx(1).epsilon(1e-4));
  CHECK(plane.at("tip").get<std::string>().find("expert ") != std::string::npos);
  CHECK(found.at("widest") <= 390);
}

}  // namespace moelab::browser_test
