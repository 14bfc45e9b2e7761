#pragma once

/// Small arrays that fit each other, and what `moelab analyze` answers to them.

#include <doctest/doctest.h>

#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "app/scenario/json.h"
#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/data/npy.h"
#include "tests/app/cli/answer.h"
#include "tests/temporary_folder.h"

namespace moelab::analyzed_arrays {

inline constexpr int kRows = 200, kExperts = 5, kInputs = 4, kOutputs = 2;

inline Answer analyze(std::vector<std::string> words) {
  words.insert(words.begin(), "analyze");
  return ask(words);
}

/// A folder of arrays that fit: P = softmax(X Wᵀ), labels, expert outputs, an earlier P.
struct Arrays {
  TemporaryFolder folder;
  Matrix probs{kRows, kExperts}, inputs{kRows, kInputs}, router{kExperts, kInputs};
  std::vector<std::int64_t> labels;

  Arrays() {
    Engine engine = Seeds{5, 0}.stream(Purpose::problem);
    fill_normal(engine, 1, inputs.data(), kRows * kInputs);
    fill_normal(engine, 2, router.data(), kExperts * kInputs);
    probs = route(router);
    for (int i = 0; i < kRows; ++i) labels.push_back(inputs(i, 0) > 0 ? 3 : 8);
    Matrix outputs(kRows, kExperts * kOutputs);
    fill_normal(engine, 1, outputs.data(), static_cast<std::size_t>(outputs.size()));
    write("P", {kRows, kExperts}, probs);
    write("X", {kRows, kInputs}, inputs);
    write("W", {kExperts, kInputs}, router);
    write("O", {kRows, kExperts, kOutputs}, outputs);
    write("P0", {kRows, kExperts}, route(router + Matrix::Ones(kExperts, 1) * inputs.row(0)));
    write_integers("C", {kRows}, labels);
  }

  Matrix route(const Matrix& weight) const {
    Matrix routing = (inputs * weight.transpose()).array().exp().matrix();
    for (Eigen::Index i = 0; i < routing.rows(); ++i) routing.row(i) /= routing.row(i).sum();
    return routing;
  }

  std::string name(const std::string& array) const { return (folder.path() / (array + ".npy")).string(); }

  void write(const std::string& array, const std::vector<std::int64_t>& shape, const Matrix& values) const {
    write_bytes(array, npy_bytes(shape, {values.data(), static_cast<std::size_t>(values.size())}));
  }
  void write_integers(const std::string& array, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& values) const {
    write_bytes(array, npy_bytes(shape, std::span<const std::int64_t>(values)));
  }
  void write_bytes(const std::string& array, const std::string& bytes) const {
    std::ofstream(name(array), std::ios::binary) << bytes;
  }

  Json answer(std::vector<std::string> words) const {
    words.push_back("--json");
    const Answer answer = analyze(words);
    REQUIRE_MESSAGE(answer.status == 0, answer.out);
    return Json::parse(answer.out);
  }
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace moelab::analyzed_arrays
