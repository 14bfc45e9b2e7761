#pragma once

/// A Slurm of one machine: munged, slurmctld and slurmd are started here, with a configuration, a key and
/// ports of their own in a temporary folder, and need no rights. Packages: packages/slurm.txt.

#include <doctest/doctest.h>

#include <random>
#include <sstream>

#include "tests/app/run/test_scenario.h"
#include "tests/system/slurm_host.h"

namespace moelab::slurm_test {

namespace fs = std::filesystem;

/// A node that registers within this time is one; a loaded machine takes a few seconds.
constexpr std::chrono::seconds kStartPatience{30};

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

}  // namespace moelab::slurm_test
