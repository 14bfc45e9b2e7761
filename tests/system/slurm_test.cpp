/// `moelab slurm` with a real Slurm of one machine: munged, slurmctld and slurmd are started here, with a
/// configuration, a key and ports of their own in a temporary folder, and need no rights. Packages:
/// packages/slurm.txt. Where they do not start, the test says so and ctest counts it as skipped.

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "tests/app/run/test_scenario.h"
#include "tests/system/process.h"

namespace moelab::slurm_test {
namespace {

namespace fs = std::filesystem;

/// A node that registers within this time is one; a loaded machine takes a few seconds.
constexpr std::chrono::seconds kStartPatience{30};
/// Forty cells of some tenths of a second each, on a machine that does other work besides.
constexpr std::chrono::seconds kJobPatience{180};
constexpr int kTasks = 20;
constexpr int kCells = 40;

std::string text_of_command(const std::vector<std::string>& words, const fs::path& out) {
  if (wait_for(start_program(words, out)) != 0) return {};
  return file_text(out);
}

/// Two ports that were free a moment ago.
std::pair<int, int> free_ports() {
  int ports[2], sockets[2];
  for (int i = 0; i < 2; ++i) {
    sockets[i] = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    REQUIRE(::bind(sockets[i], reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::getsockname(sockets[i], reinterpret_cast<sockaddr*>(&address), &length) == 0);
    ports[i] = ntohs(address.sin_port);
  }
  for (const int socket : sockets) ::close(socket);
  return {ports[0], ports[1]};
}

std::string short_host_name() {
  char name[256] = {};
  REQUIRE(::gethostname(name, sizeof(name) - 1) == 0);
  return std::string(name).substr(0, std::string(name).find('.'));
}

/// A Slurm with one node of four processors, gone at the end.
class Cluster {
 public:
  Cluster() {
    // Debian keeps daemons where not everybody's PATH leads.
    ::setenv("PATH", (std::string(std::getenv("PATH")) + ":/usr/sbin:/sbin").c_str(), 1);
    for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel"}) {
      if (!text_of_command({"sh", "-c", std::string("command -v ") + program}, log("which")).empty())
        continue;
      reason_ = std::string(program) + " is not installed (packages/install slurm)";
      return;
    }
    write_configuration();
    ::setenv("SLURM_CONF", (path() / "slurm.conf").c_str(), 1);
    start_daemon({"munged", "--foreground", "--force", "--key-file=" + (path() / "munge.key").string(),
                  "--socket=" + socket().string(), "--pid-file=" + (path() / "munged.pid").string(),
                  "--log-file=" + log("munged.log").string(),
                  "--seed-file=" + (path() / "munge.seed").string()});
    if (!wait_until([&] { return fs::exists(socket()); }, kStartPatience)) {
      reason_ = "munged does not start: " + last_line("munged.log");
      return;
    }
    start_daemon({"slurmctld", "-D"});
    start_daemon({"slurmd", "-D"});
    const auto is_idle = [&] {
      return text_of_command({"sinfo", "-h", "-o", "%T"}, log("sinfo")).starts_with("idle");
    };
    if (!wait_until(is_idle, kStartPatience))
      reason_ = "the node does not start: " + last_line("slurmctld.log") + "; " + last_line("slurmd.log");
  }

  ~Cluster() {
    if (daemons_.size() == 3) text_of_command({"scancel", "--partition=main"}, log("scancel"));
    for (std::size_t i = daemons_.size(); i-- > 0;) {
      ::kill(daemons_[i], SIGTERM);
      wait_for(daemons_[i]);
    }
    ::unsetenv("SLURM_CONF");
  }

  /// Why there is no Slurm; empty when there is one.
  const std::string& reason() const { return reason_; }
  const fs::path& path() const { return folder_.path(); }
  fs::path log(const std::string& name) const { return path() / name; }

  /// Ids of the tasks that are running, "1_0".
  std::vector<std::string> running() const {
    std::istringstream text(text_of_command({"squeue", "-h", "-r", "-t", "R", "-o", "%i"}, log("squeue")));
    std::vector<std::string> ids;
    for (std::string id; text >> id;) ids.push_back(id);
    return ids;
  }
  bool has_jobs() const {
    const int status = wait_for(start_program({"squeue", "-h"}, log("squeue")));
    return status != 0 || !file_text(log("squeue")).empty();
  }
  /// What Slurm knows of a task: "JobId=2 … JobState=FAILED …".
  std::string task(const std::string& id) const {
    return text_of_command({"scontrol", "show", "job", "-o", id}, log("task"));
  }

 private:
  fs::path socket() const { return path() / "munge.socket"; }

  void write_configuration() {
    const fs::path key = path() / "munge.key";
    std::random_device device;  // a secret, no draw of an experiment
    std::ofstream(key) << device() << device() << device() << device() << device() << device() << device();
    fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
    const auto [controller, node] = free_ports();
    const std::string user = text_of_command({"id", "-un"}, log("user"));
    const std::string host = short_host_name();
    // Neither cgroups nor accounting, which need rights. A requeued task waits until the credential of its
    // first start has expired (cred_expire).
    std::ofstream(path() / "slurm.conf")
        << "ClusterName=moelab\nSlurmctldHost=" << host << "(127.0.0.1)\nSlurmUser=" << user
        << "SlurmdUser=" << user << "SlurmctldPort=" << controller << "\nSlurmdPort=" << node
        << "\nAuthType=auth/munge\nAuthInfo=socket=" << socket().string() << ",cred_expire=5\n"
        << "StateSaveLocation=" << (path() / "state").string()
        << "\nSlurmdSpoolDir=" << (path() / "spool").string()
        << "\nSlurmctldPidFile=" << (path() / "slurmctld.pid").string()
        << "\nSlurmdPidFile=" << (path() / "slurmd.pid").string()
        << "\nSlurmctldLogFile=" << log("slurmctld.log").string()
        << "\nSlurmdLogFile=" << log("slurmd.log").string()
        << "\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n"
           "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"
           "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\n"
           "SchedulerType=sched/builtin\n"
           "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0\n"
           "ReturnToService=2\nNodeName="
        << host << " NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\nPartitionName=main Nodes=ALL Default=YES\n";
    fs::create_directory(path() / "state");
    fs::create_directory(path() / "spool");
  }

  /// Ends with this process, whatever ends it.
  void start_daemon(std::vector<std::string> words) {
    const std::string name = words.front();
    words.insert(words.begin(), {"setpriv", "--pdeathsig", "TERM"});
    daemons_.push_back(start_program(std::move(words), log(name + ".out")));
  }

  std::string last_line(const std::string& name) const {
    std::istringstream text(file_text(log(name)));
    std::string last = "no log";
    for (std::string line; std::getline(text, line);) last = line;
    return last;
  }

  TemporaryFolder folder_;
  std::string reason_;
  std::vector<pid_t> daemons_;
};

Json status_of(const fs::path& run, const fs::path& out) {
  REQUIRE(call({"status", run.string(), "--json"}, out) == 0);
  return Json::parse(file_text(out)).at("total");
}

std::string export_of(const fs::path& run, const fs::path& out) {
  REQUIRE(call({"export", run.string()}, out) == 0);
  return file_text(out);
}

Json forty_cells() {
  return Json::parse(R"({
    "name": "forty",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 6, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 50},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "mlp", "depth": 2, "width": 8}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 16, "steps": 40000},
    "metrics": ["task", "sparsity"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false}},
    "sweep": {"data.train_samples": [20, 40]},
    "seeds": {"root": 1, "count": 10}
  })");
}

/// Kills a task of the array while it runs, as a machine that fails would. Its id.
std::string kill_a_task(const Cluster& cluster) {
  std::string killed;
  const auto kill_one = [&] {
    const std::vector<std::string> ids = cluster.running();
    if (ids.empty()) return false;
    // The last to start has most of its work before it; one that ends in between was not killed.
    const std::string& id = ids.back();
    wait_for(start_program({"scancel", "--signal=KILL", "--batch", id}, cluster.log("scancel")));
    REQUIRE(wait_until([&] { return cluster.task(id).find("JobState=RUNNING") == std::string::npos; }));
    if (cluster.task(id).find("JobState=FAILED") != std::string::npos) killed = id;
    return !killed.empty();
  };
  REQUIRE(wait_until(kill_one));
  return killed;
}

}  // namespace

TEST_CASE("slurm: an array of twenty tasks, one of them killed and requeued, gives what a local run gives") {
  const Cluster cluster;
  if (!cluster.reason().empty()) {
    MESSAGE("slurm test skipped: " << cluster.reason());
    return;
  }
  // A folder whose name needs quoting.
  const fs::path folder = cluster.path() / "a run's folder, 100%A";
  fs::create_directory(folder);
  const fs::path file = folder / "forty.json", run = folder / "run", log = cluster.log("log");
  std::ofstream(file) << forty_cells().dump();
  REQUIRE(call({"slurm", file.string(), "--out", run.string(), "--threads", "1", "--minutes-per-cell", "1",
                "--minutes-per-task", "2", "--submit"},
               log) == 0);
  CHECK(file_text(log).find("20 tasks for 40 cells") != std::string::npos);

  const std::string killed = kill_a_task(cluster);
  // While the job runs, whoever looks sees the whole plan and what is recorded of it.
  const Json before = status_of(run, log);
  CHECK(before.at("missing") > 0);
  CHECK(before.at("failed") == 0);
  const std::string partial = export_of(run, log);
  CHECK(std::count(partial.begin(), partial.end(), '\n') == kCells + 1);

  REQUIRE(wait_for(start_program({"scontrol", "requeue", killed}, log)) == 0);
  REQUIRE(wait_until([&] { return !cluster.has_jobs(); }, kJobPatience));
  const std::string task = cluster.task(killed);
  CHECK_MESSAGE(task.find("JobState=COMPLETED") != std::string::npos, task);
  CHECK_MESSAGE(task.find("Restarts=1") != std::string::npos, task);
  CHECK(status_of(run, log).at("done") == kCells);

  const auto logs = std::count_if(fs::directory_iterator(run), {}, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("slurm-");
  });
  CHECK(logs == kTasks);
  std::ptrdiff_t records = 0;
  for (const fs::directory_entry& journal : fs::directory_iterator(run / "journal")) {
    const std::string text = file_text(journal.path());
    records += std::count(text.begin(), text.end(), '\n');
  }
  CHECK(records == kCells);  // what the killed task had recorded was not run again

  const fs::path local = folder / "local";
  REQUIRE(call({"run", file.string(), "--out", local.string(), "--threads", "2"}, log) == 0);
  CHECK(export_of(run, log) == export_of(local, log));
}

}  // namespace moelab::slurm_test
