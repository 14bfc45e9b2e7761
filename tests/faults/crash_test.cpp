/// Runs that are killed at any moment while their scenarios, settings, threads and data change, with several
/// starts at once and disks that fill up; held against references that nothing disturbed.
///
/// MOELAB_CRASH_SECONDS says for how long: 8 unless told, 600 with MOELAB_FAULTS_WHOLE.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <tuple>

#include "app/store/store.h"
#include "sim/data/npy.h"
#include "tests/faults/faulty_program.h"

namespace moelab::crash_test {
namespace {

namespace fs = std::filesystem;
using namespace moelab::faults;

/// What a start asks for; two are of one plan where they are equal.
struct Wish {
  int steps = 4, seeds = 1, sizes = 1, data = 0;
  bool fast = false;  ///< a larger learning rate, by --set
  auto operator<=>(const Wish&) const = default;
};

std::string text_of(const Wish& wish) {
  return fmt::format("steps {}, seeds {}, sizes {}, data {}, {}", wish.steps, wish.seeds, wish.sizes,
                     wish.data, wish.fast ? "fast" : "slow");
}

Wish draw_wish(int data, Engine& engine) {
  return {4 + draw_index(engine, 3), 1 + draw_index(engine, 8), 1 + draw_index(engine, 3), data,
          draw_index(engine, 3) == 0};
}

/// A run folder with all calls on it. Numbers of different vector levels never meet in one folder.
struct Store {
  fs::path run;
  std::string level;
  std::set<Wish> wishes;
  Records known;
};

struct Tally {
  int starts = 0, kills = 0, full_disks = 0, edits = 0, settled = 0, replaced = 0;
  std::size_t cells = 0;
};

class CrashTest {
 public:
  explicit CrashTest(Engine engine) : engine_(engine) { write_data(0); }

  void run(std::chrono::seconds time) {
    const Clock::time_point end = Clock::now() + time;
    while (Clock::now() < end) {
      if (stores_.size() < 2 || chance(0.1)) add_store();
      Store& store = stores_[static_cast<std::size_t>(draw_index(engine_, static_cast<int>(stores_.size())))];
      disturb(store);
      check_records(store);
      if (chance(0.25)) settle(store, *std::next(store.wishes.begin(), pick(store.wishes.size())));
    }
    for (Store& store : stores_) {
      for (const Wish& wish : store.wishes) settle(store, wish);
    }
  }
  Tally tally;
  Findings findings;

 private:
  struct Reference {
    std::string table;
    Records records;
  };

  bool chance(double share) { return draw_uniform(engine_) < share; }
  int pick(std::size_t count) { return draw_index(engine_, static_cast<int>(count)); }

  /// The data file in one of its two contents.
  void write_data(int content) {
    std::vector<double> inputs(60 * 3), targets(60);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = static_cast<double>((i * 37 + static_cast<std::size_t>(content)) % 11) / 11;
    for (std::size_t i = 0; i < targets.size(); ++i)
      targets[i] = inputs[3 * i] - (content == 0 ? 0.5 : 2) * inputs[3 * i + 1];
    for (const auto& [name, shape, values] :
         {std::tuple("x.npy", std::vector<std::int64_t>{60, 3}, &inputs),
          std::tuple("y.npy", std::vector<std::int64_t>{60, 1}, &targets)}) {
      const fs::path fresh = here_ / "fresh.npy";
      std::ofstream(fresh, std::ios::binary) << npy_bytes(shape, std::span<const double>(*values));
      fs::rename(fresh, here_ / name);
    }
    data_ = content;
  }

  /// Writes the wish's scenario; a new file for each start, as editors do.
  fs::path write_scenario(const Wish& wish) {
    const fs::path file = here_ / fmt::format("scenario{}.json", files_++ % 16);
    Json scenario = tiny();
    if (wish.data < 2)
      scenario["data"] = {{"generator", "file"},
                          {"inputs", (here_ / "x.npy").string()},
                          {"targets", (here_ / "y.npy").string()},
                          {"train_samples", 20},
                          {"test_samples", 20}};
    scenario["train"]["steps"] = wish.steps;
    scenario["sweep"]["data.train_samples"] = std::vector<int>{10, 20, 40};
    scenario["sweep"]["data.train_samples"].erase(
        scenario["sweep"]["data.train_samples"].begin() + wish.sizes,
        scenario["sweep"]["data.train_samples"].end());
    scenario["save"] = {"weights"};
    std::ofstream(file) << scenario.dump();
    return file;
  }

  std::vector<std::string> command(const Wish& wish, const fs::path& run, int threads) {
    std::vector<std::string> words = {
        "run",       write_scenario(wish).string(), "--out", run.string(),
        "--threads", std::to_string(threads),       "--set", fmt::format("seeds.count={}", wish.seeds)};
    if (wish.fast) words.insert(words.end(), {"--set", "train.lr=0.02"});
    return words;
  }

  void add_store() {
    const bool first = stores_.empty();
    stores_.push_back({here_ / fmt::format("run{}", runs_++), first || chance(0.5) ? "" : "sse", {}, {}});
    if (stores_.size() > 4) {
      for (const Wish& wish : std::set<Wish>(stores_.front().wishes)) settle(stores_.front(), wish);
      fs::remove_all(stores_.front().run);
      stores_.erase(stores_.begin());
    }
  }

  struct Started {
    pid_t process = 0;
    Wish wish;
    bool full = false;
    int sent = 0;  ///< signal
    fs::path log;
  };

  /// Starts the program once to five times, and ends the processes in one way or another.
  void disturb(Store& store) {
    const int data = pick(3);
    if (data < 2 && data != data_) write_data(data);
    const Wish wish = !store.wishes.empty() && chance(0.4)
                          ? *std::next(store.wishes.begin(), pick(store.wishes.size()))
                          : draw_wish(data, engine_);
    if (wish.data < 2 && wish.data != data_) write_data(wish.data);
    std::vector<Started> all;
    const int count = chance(0.5) ? 1 : 2 + pick(4);
    for (int i = 0; i < count; ++i) {
      Started started;
      started.wish = i > 0 && chance(0.3) ? draw_wish(wish.data, engine_) : wish;
      tally.edits += store.wishes.insert(started.wish).second ? 1 : 0;
      started.full = chance(0.1);
      started.log = here_ / fmt::format("log{}", i);
      const std::uint64_t full_from = 1 + static_cast<std::uint64_t>(pick(40));
      std::map<std::string, std::string> variables;
      if (started.full)
        variables = variables_of(
            {&kCalls[static_cast<int>(Call::write)], ENOSPC, full_from, ~std::uint64_t{0}}, here_, store.run);
      variables["MOELAB_VECTOR_LEVEL"] = store.level;
      const Variables set(variables);
      started.process = start(command(started.wish, store.run, 1 + pick(4)), started.log);
      ++tally.starts;
      tally.full_disks += started.full ? 1 : 0;
      all.push_back(started);
    }
    // Where about half of the kills find a new cell.
    std::this_thread::sleep_for(std::chrono::duration<double>(longest_ * draw_uniform(engine_)));
    const bool replaced = wish.data < 2 && chance(0.1);
    if (replaced) {
      write_data(1 - wish.data);
      ++tally.replaced;
    }
    for (Started& started : all) {
      constexpr int kSignals[] = {SIGKILL, SIGKILL, SIGKILL, SIGTERM, SIGHUP, SIGINT, 0};
      started.sent = kSignals[pick(std::size(kSignals))];
      if (started.sent != 0) ::kill(started.process, started.sent);
    }
    for (const Started& started : all) {
      const int status = wait_for(started.process);
      tally.kills += status == -SIGKILL || status == 130 ? 1 : 0;
      const bool by_signal =
          started.sent != 0 && (status == -started.sent || (status == 130 && started.sent != SIGKILL));
      // A file that is replaced is another plan's, or it is refused.
      const bool refused = status == 3 && (started.full || replaced);
      if (status == 0 || by_signal || refused) continue;
      findings.add(fmt::format("status {}{}", status, all.size() > 1 ? " of simultaneous starts" : ""),
                   text_of(started.wish) + "\n" + file_text(started.log.string() + ".err"));
    }
  }

  /// Nothing that was recorded is lost or changed.
  void check_records(Store& store) {
    Records now;
    try {
      now = read_records(store.run);
    } catch (const std::exception& error) {
      findings.add("journals that are refused", error.what());
      return;
    }
    for (const auto& [id, record] : store.known) {
      const auto kept = now.find(id);
      if (kept == now.end())
        findings.add("a lost cell", id);
      else if (!same_numbers(kept->second, record))
        findings.add("a changed cell", id);
    }
    const bool grown = now.size() > store.known.size();
    tally.cells += grown ? now.size() - store.known.size() : 0;
    longest_ = std::clamp(longest_ * (grown ? 1 / 1.1 : 1.1), 0.005, 2.0);
    store.known = std::move(now);
  }

  const Reference& reference(const Store& store, const Wish& wish) {
    const auto [entry, is_new] = references_.try_emplace({store.level, wish});
    if (!is_new) return entry->second;
    const fs::path run = here_ / "reference";
    fs::remove_all(run);
    const Variables set({{"MOELAB_VECTOR_LEVEL", store.level}});
    REQUIRE(call(command(wish, run, 1), here_ / "log") == 0);
    REQUIRE(call({"export", run.string()}, here_ / "log") == 0);
    entry->second = {file_text(here_ / "log"), read_records(run)};
    return entry->second;
  }

  /// Lets the wish's run come to its end, and compares it with the reference.
  void settle(Store& store, const Wish& wish) {
    ++tally.settled;
    if (wish.data < 2 && wish.data != data_) write_data(wish.data);
    const Reference& right = reference(store, wish);
    const std::string place = store.run.filename().string() + ": " + text_of(wish) + "\n";
    const fs::path log = here_ / "log";
    {
      const Variables set({{"MOELAB_VECTOR_LEVEL", store.level}});
      if (const int status = call(command(wish, store.run, 2), log); status != 0) {
        findings.add(fmt::format("status {} of an undisturbed start", status),
                     place + file_text(log.string() + ".err"));
        return;
      }
    }
    if (call({"export", store.run.string()}, log) != 0 || file_text(log) != right.table)
      findings.add("another export", place + file_text(log.string() + ".err"));
    check_records(store);
    for (const auto& [id, record] : right.records) {
      const auto found = store.known.find(id);
      if (found == store.known.end())
        findings.add("a missing cell", place + id);
      else if (!same_numbers(found->second, record))
        findings.add("another cell", place + id);
    }
    if (call({"verify", store.run.string()}, log) != 0)
      findings.add("verify finds damage", place + file_text(log));
  }

  TemporaryFolder folder_;
  fs::path here_ = folder_.path();
  Engine engine_;
  std::vector<Store> stores_;
  std::map<std::pair<std::string, Wish>, Reference> references_;
  int runs_ = 0, files_ = 0, data_ = 0;
  double longest_ = 0.1;  ///< seconds before a signal
};

}  // namespace

TEST_CASE("program: killed while scenarios, settings and data change, it comes to the references' numbers") {
  const char* const given = std::getenv("MOELAB_CRASH_SECONDS");
  CrashTest test(chosen_engine());
  test.run(std::chrono::seconds(given != nullptr ? std::atoi(given) : whole() ? 600 : 8));
  const Tally& tally = test.tally;
  MESSAGE(tally.starts, " starts, ", tally.kills, " kills, ", tally.full_disks, " full disks, ", tally.cells,
          " cells, ", tally.edits, " edits, ", tally.replaced, " data files replaced during a run, ",
          tally.settled, " runs held against a reference, ", test.findings.count(), " differences");
  CHECK(tally.kills > 5);
  CHECK(tally.settled > 2);
}

}  // namespace moelab::crash_test
