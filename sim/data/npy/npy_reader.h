#pragma once

/// Arrays of .npy files read in blocks of rows, so that files may be larger than memory; arrays in memory are
/// read in the same way.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/types.h"
#include "sim/data/file_contents.h"
#include "sim/data/npy/npy_format.h"

namespace moelab {

/// An array in memory, which outlives whoever reads it: `format.header_bytes` is 0.
struct MemoryArray {
  NpyFormat format = {};
  const char* values = nullptr;
};

/// An open array of shape (n, …): n ≥ 1 rows of row_size() entries each. Reading does not change the object,
/// so that several threads may read at once.
class NpyReader {
 public:
  /// Opens `file`; `place` is the path of the errors: the field or option that names the file. Throws
  /// UserError where there is no such file, it is no regular one, its header is refused (see
  /// parse_npy_header), it holds less or more bytes than its shape says, it is a single value, or it has no
  /// rows or no entries; EnvironmentError where it cannot be read, and where it does not hold `content` any
  /// more, now or when it is read.
  NpyReader(const std::filesystem::path& file, std::string place,
            std::shared_ptr<const FileContent> content = nullptr);
  /// An array in memory. Throws UserError for a single value and for no rows or no entries.
  NpyReader(const MemoryArray& array, std::string place);
  const std::string& place() const { return place_; }
  const std::vector<std::int64_t>& shape() const { return format_.shape; }
  NpyType type() const { return format_.type; }
  std::int64_t rows() const { return format_.shape.front(); }  ///< n
  std::int64_t row_size() const { return row_size_; }          ///< entries of a row

  /// Rows first … first + count − 1 as (count, row_size), each row in C order whatever the file's order.
  /// Throws std::out_of_range for rows that do not exist, EnvironmentError when reading fails.
  Matrix read(std::int64_t first, std::int64_t count) const;
  /// The same; throws UserError, with the place, when an entry is NaN or infinite.
  Matrix read_finite(std::int64_t first, std::int64_t count) const;
  /// The same of an array of integers or bools. Throws UserError when it holds floating-point numbers.
  std::vector<std::int64_t> read_integers(std::int64_t first, std::int64_t count) const;

  /// Where entry `entry` of a row stands: "row 5", "row 5, column 3", or "[5, 2, 3]" of three dimensions.
  std::string place_of(std::int64_t row, std::int64_t entry) const;
  /// The error of this array: `message` completes "'X.npy' …", or "the array …" of memory.
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  void read_format();
  void check_format();
  template <class Value>
  void read_values(std::int64_t first, std::int64_t count, Value* values) const;

  std::string place_;
  std::optional<InputFile> file_;  ///< none of an array in memory
  const char* memory_ = nullptr;
  NpyFormat format_;
  std::int64_t row_size_ = 0;
  std::vector<std::int64_t> fortran_offsets_;  ///< per entry of a row in C order: its column in the file
};

/// Names of clusters or experts: rows first … first + count − 1 of an integer array, each in [0, limit).
/// Throws UserError with the row (and the column where a row has several), the value and the limits.
std::vector<int> read_labels(const NpyReader& array, std::int64_t first, std::int64_t count,
                             std::int64_t limit);

/// The limit of labels that only name clusters.
constexpr std::int64_t kLabelLimit = std::int64_t{1} << 31;

}  // namespace moelab
