#include "sim/data/file_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/data/npy.h"

namespace moelab {
namespace {

constexpr std::int64_t kMaxColumns = 1000000;
constexpr int kBlock = 4096;  // rows read at a time when a file is checked
/// Rows of float32 probabilities sum to one within about 1e-7 per entry.
constexpr double kProbabilityRounding = 1e-4;

/// The files of one set.
struct FileSet {
  NpyReader inputs, targets;
  std::vector<int> labels;  // (n), or empty
};

void require_shape(bool holds, const NpyReader& array, const std::string& needed) {
  if (!holds) array.refuse(fmt::format("has shape {}, needs {}", shape_text(array.shape()), needed));
}

/// The arrays of the fields `prefix`inputs, `prefix`targets and `prefix`labels.
FileSet open_set(const std::string& prefix, const std::string& inputs, const std::string& targets,
                 const std::optional<std::string>& label_file,
                 const std::shared_ptr<FileContents>& contents) {
  const std::string at = "data." + prefix;
  const auto open = [&](const std::string& file, const char* field) {
    return NpyReader(file, at + field, content_of(contents, file));
  };
  FileSet set{open(inputs, "inputs"), open(targets, "targets"), {}};
  const std::int64_t rows = set.inputs.rows();
  const std::string beside = fmt::format("to match {}inputs of shape {}", at, shape_text(set.inputs.shape()));
  require_shape(set.inputs.shape().size() == 2 && set.inputs.row_size() <= kMaxColumns, set.inputs,
                fmt::format("(n, d) with at most {} columns", kMaxColumns));
  require_shape(
      set.targets.shape().size() <= 2 && set.targets.rows() == rows && set.targets.row_size() <= kMaxColumns,
      set.targets, fmt::format("({}, o) or ({},) {}", rows, rows, beside));
  if (label_file) {
    const NpyReader labels = open(*label_file, "labels");
    require_shape(labels.shape().size() == 1 && labels.rows() == rows, labels,
                  fmt::format("({},) {}", rows, beside));
    set.labels = read_labels(labels, 0, rows, kLabelLimit);
  }
  return set;
}

/// The fields of the test files must all be given or none.
void check_test_fields(const FileOptions& files) {
  const bool has_inputs = files.test_inputs.has_value();
  if (has_inputs != files.test_targets.has_value()) {
    throw InvalidOption(
        has_inputs ? "data.test_targets" : "data.test_inputs",
        fmt::format("missing; data.{} is given", has_inputs ? "test_inputs" : "test_targets"));
  }
  if (files.test_labels && !has_inputs)
    throw InvalidOption("data.test_labels", "given without data.test_inputs, to whose rows it belongs");
  if (has_inputs && files.labels.has_value() != files.test_labels.has_value()) {
    const bool has_labels = files.labels.has_value();
    throw InvalidOption(has_labels ? "data.test_labels" : "data.labels",
                        fmt::format("missing; data.{} is given", has_labels ? "labels" : "test_labels"));
  }
}

class FileProblem final : public Problem {
 public:
  explicit FileProblem(const DataOptions& data)
      : FileProblem(data.options().get<FileOptions>(), data.contents) {
    set_counts(data.train_samples.value_or(0), data.test_samples);
  }

  FileProblem(const FileOptions& files, const std::shared_ptr<FileContents>& contents)
      : train_(open_set("", files.inputs, files.targets, files.labels, contents)) {
    check_test_fields(files);
    if (files.test_inputs) open_test_files(files, contents);
    const auto label_count = [](const std::vector<int>& labels) {
      return labels.empty() ? 1 : *std::max_element(labels.begin(), labels.end()) + 1;
    };
    clusters_ = std::max(label_count(train_.labels), test_ ? label_count(test_->labels) : 1);
  }

  Layout layout() const override {
    return {.input_dim = static_cast<int>(train_.inputs.row_size()),
            .output_dim = static_cast<int>(train_.targets.row_size())};
  }
  int clusters() const override { return clusters_; }
  int train_count() const { return train_count_; }
  int test_count() const { return test_count_; }

  Dataset draw(Engine& /*engine*/, const SampleRange& range) const override {
    if (range.purpose != Purpose::train_data && range.purpose != Purpose::test_data)
      throw InvalidOption("data.generator", "'file' has rows for the training and test sets only");
    const bool is_test = range.purpose == Purpose::test_data;
    const FileSet& set = is_test && test_ ? *test_ : train_;
    const std::int64_t start = is_test && !test_ ? train_.inputs.rows() - test_count_ : 0;
    const std::int64_t first = start + range.first;
    if (range.first < 0 || range.count > (is_test ? test_count_ : train_count_) - range.first)
      throw InvalidOption(
          "data.inputs",
          fmt::format("{} samples from {} on are asked for, more than there are", range.count, range.first));
    Dataset rows{set.inputs.read_finite(first, range.count), set.targets.read_finite(first, range.count),
                 std::vector<int>(size(range.count), 0)};
    if (!set.labels.empty()) std::copy_n(set.labels.begin() + first, range.count, rows.cluster.begin());
    return rows;
  }

 private:
  void open_test_files(const FileOptions& files, const std::shared_ptr<FileContents>& contents) {
    test_.emplace(open_set("test_", *files.test_inputs, *files.test_targets, files.test_labels, contents));
    const auto require_columns = [](const NpyReader& array, const NpyReader& other) {
      if (array.row_size() == other.row_size()) return;
      array.refuse(fmt::format("has shape {}, needs as many columns as {}, which has shape {}",
                               shape_text(array.shape()), other.place(), shape_text(other.shape())));
    };
    require_columns(test_->inputs, train_.inputs);
    require_columns(test_->targets, train_.targets);
  }

  void set_counts(int train, int test) {
    const std::int64_t rows = train_.inputs.rows();
    const std::int64_t test_rows = test_ ? test_->inputs.rows() : rows - 1;
    if (test > test_rows) {
      throw InvalidOption(
          "data.test_samples",
          test_ ? fmt::format("got {}, but data.test_inputs has {} rows", test, test_rows)
                : fmt::format("got {}, but data.inputs has {} rows, and training needs at least one of them",
                              test, rows));
    }
    const std::int64_t train_rows = test_ ? rows : rows - test;
    if (train > train_rows) {
      throw InvalidOption("data.train_samples",
                          test_ ? fmt::format("got {}, but data.inputs has {} rows", train, rows)
                                : fmt::format("got {}, but the last data.test_samples = {} of the {} rows of "
                                              "data.inputs are the test set: at most {} are left",
                                              train, test, rows, train_rows));
    }
    train_count_ = train;
    test_count_ = test;
  }

  FileSet train_;
  std::optional<FileSet> test_;  // none if the test set is the end of the training files
  int train_count_ = 0;
  int test_count_ = 0;
  int clusters_ = 1;
};

std::vector<std::pair<std::string, std::string>> files_with_rows(const AnyOptions& options) {
  const FileOptions& files = options.get<FileOptions>();
  std::vector<std::pair<std::string, std::string>> given = {{"inputs", files.inputs},
                                                            {"targets", files.targets}};
  const auto add = [&](const char* field, const std::optional<std::string>& file) {
    if (file) given.emplace_back(field, *file);
  };
  add("labels", files.labels);
  add("test_inputs", files.test_inputs);
  add("test_targets", files.test_targets);
  add("test_labels", files.test_labels);
  return given;
}

}  // namespace

void FileOptions::bind(Fields& fields) {
  fields.required().add("inputs", inputs, "file of x, (n, d); relative to the scenario file");
  fields.required().add("targets", targets, "file of y, (n, o) or (n,)");
  fields.add("labels", labels,
             "file of the rows' clusters, integers (n,); without it all rows are one cluster, and sparsity "
             "is measured over that one");
  fields.add("test_inputs", test_inputs, "file of the test set's x, (m, d)");
  fields.add("test_targets", test_targets, "file of the test set's y, (m, o) or (m,)");
  fields.add("test_labels", test_labels, "file of the test set's clusters, integers (m,)");
}

GeneratorKind file_generator() {
  GeneratorKind kind = {
      {"file",
       "x, y and clusters from .npy files. The test set has files, or it is the last test_samples rows",
       FileOptions{}, FileOptions{.inputs = "inputs.npy", .targets = "targets.npy"}},
      [](const DataOptions& data, const Seeds& /*seeds*/) -> std::unique_ptr<Problem> {
        return std::make_unique<FileProblem>(data);
      },
      [](const DataOptions& data) { FileProblem problem(data); }};
  kind.file_fields = {"inputs", "targets", "labels", "test_inputs", "test_targets", "test_labels"};
  kind.files = files_with_rows;
  kind.has_labels = [](const AnyOptions& options) { return options.get<FileOptions>().labels.has_value(); };
  return kind;
}

void check_file_values(const DataOptions& data, bool class_targets) {
  const FileProblem problem(data);
  const bool has_test_files = data.options().get<FileOptions>().test_targets.has_value();
  Engine engine;
  const auto check_rows = [&](const Dataset& rows, Purpose purpose, int first) {
    for (Eigen::Index i = 0; i < rows.y.rows() && class_targets; ++i) {
      if (rows.y.row(i).minCoeff() >= 0 && std::abs(rows.y.row(i).sum() - 1) <= kProbabilityRounding)
        continue;
      throw UserError(purpose == Purpose::test_data && has_test_files ? "data.test_targets" : "data.targets",
                      fmt::format("sample {} of the {} set is no indicator of a class: with loss.task "
                                  "\"cross_entropy\" rows need entries of at least 0 that sum to 1",
                                  first + i, purpose == Purpose::test_data ? "test" : "training"));
    }
  };
  const auto read_all = [&](Purpose purpose, int samples) {
    for (int first = 0; first < samples; first += kBlock)
      check_rows(problem.draw(engine, {purpose, first, std::min(kBlock, samples - first)}), purpose, first);
  };
  read_all(Purpose::train_data, problem.train_count());
  read_all(Purpose::test_data, problem.test_count());
}

}  // namespace moelab
