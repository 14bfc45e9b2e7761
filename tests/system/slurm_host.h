#pragma once

/// The settings of a Slurm with one machine.

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/app/run/test_scenario.h"
#include "tests/system/process.h"

namespace moelab::slurm_test {

namespace fs = std::filesystem;

inline std::string text_of_command(const std::vector<std::string>& words, const fs::path& out) {
  if (wait_for(start_program(words, out)) != 0) return {};
  return file_text(out);
}

/// Two ports that were free a moment ago.
inline std::pair<int, int> free_ports() {
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

inline std::string short_host_name() {
  char name[256] = {};
  REQUIRE(::gethostname(name, sizeof(name) - 1) == 0);
  return std::string(name).substr(0, std::string(name).find('.'));
}

}  // namespace moelab::slurm_test
