#pragma once

/// Arrays in NumPy's file formats: writing of version 1.0 and of .npz, and reading of versions 1.0, 2.0 and
/// 3.0 in blocks of rows.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/data/file_contents.h"

namespace moelab {

/// The header of an array of `shape`. `type` is "<f8" (double) or "<i8" (64-bit integer). The values follow
/// in C order, little-endian. The length is a multiple of 64 bytes, so that the values are aligned when the
/// file is mapped.
std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape);

/// A whole file. Throws std::invalid_argument if the number of values is not the product of the shape.
std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const double> values);
std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const std::int64_t> values);

/// The bytes of a .npz file. Each array has a name and the bytes of its .npy file. Equal arrays give equal
/// bytes. Throws EnvironmentError beyond 4 GB.
std::string npz_bytes(const std::vector<std::pair<std::string, std::string>>& arrays);

// Headers of .npy files (NEP 1)

/// The types of values that can be read.
/// NumPy has no bfloat16: no .npy file says that it holds them. It writes them as `void16`, two bytes that it
/// does not know.
enum class NpyType {
  float16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  bfloat16,
  void16
};

std::string type_name(NpyType type);  ///< NumPy's name: "float32", "bool"
std::size_t byte_size(NpyType type);  ///< of one value
bool is_integer(NpyType type);        ///< integers and bool
bool is_float(NpyType type);
/// The type with NumPy's name; none for other names.
std::optional<NpyType> type_of_name(std::string_view name);

struct NpyFormat {
  NpyType type = NpyType::float64;
  bool fortran_order = false;  ///< the first index runs fastest
  std::vector<std::int64_t> shape;
  std::size_t header_bytes = 0;  ///< the offset of the values
  bool is_big_endian = false;    ///< the first byte of a value is the highest

  /// Bytes of all values. parse_npy_header ensures that this does not overflow.
  std::uint64_t value_bytes() const;
};

/// "(1000, 64)", "(1000,)" or "()", as in NumPy.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Longer headers are refused. NumPy writes about 128 bytes for arrays without fields.
constexpr std::size_t kMaxNpyHeader = 1u << 16;

/// Parses the beginning of a file. Bytes after the header are ignored. Throws std::runtime_error with a
/// message that completes "the file …": "is not a .npy file: …". Refuses keys other than descr, fortran_order
/// and shape, other types (complex, text, objects, fields), more than 32 dimensions, and a shape
/// of more than 2^63 − 1 bytes.
NpyFormat parse_npy_header(std::string_view bytes);

// Reading in blocks of rows, so that files may be larger than memory

/// An array in memory, which must outlive its readers. `format.header_bytes` is 0.
struct MemoryArray {
  NpyFormat format = {};
  const char* values = nullptr;
};

/// An open array of shape (n, …): n ≥ 1 rows of row_size() entries each. Reading does not change the object:
/// several threads may read at once.
class NpyReader {
 public:
  /// Opens `file`. `place` is the path of the errors: the field or option that names the file. Throws
  /// UserError if the file does not exist or is not a regular file, its header is refused (see
  /// parse_npy_header), its length does not match its shape, or it is a single value or has no entries.
  /// Throws EnvironmentError if it cannot be read or no longer holds `content`, now or at a later reading.
  /// `stored_as`: what values of 16 bits stand for, where the file says integers or void16.
  NpyReader(const std::filesystem::path& file, std::string place,
            std::shared_ptr<const FileContent> content = nullptr,
            std::optional<NpyType> stored_as = std::nullopt);
  /// An array in memory. Throws UserError for a single value and for no entries.
  NpyReader(const MemoryArray& array, std::string place, std::string name = "");
  /// An array inside a file of several: its values begin at `format.header_bytes`. Throws likewise.
  NpyReader(std::shared_ptr<const InputFile> file, NpyFormat format, std::string place, std::string name);
  /// Values that the reader keeps. `file` is named by errors; it may be empty.
  NpyReader(std::shared_ptr<const std::string> values, NpyFormat format, std::string place, std::string name,
            std::filesystem::path file = {});
  const std::string& place() const { return place_; }
  /// The array's name in its file; empty for the array of a .npy file.
  const std::string& name() const { return name_; }
  /// The same bytes as values of another type of as many bytes.
  NpyReader as(NpyType type) const;
  /// `count` entries from entry `first` on, in C order, as an array of `shape`. The file has C order.
  NpyReader part(std::int64_t first, std::vector<std::int64_t> shape, std::string name) const;
  /// array[…, index, …], whose axis `axis` is at one place, as an array of `shape`. The file has C order, and
  /// the array is not a slice itself.
  NpyReader slice(std::size_t axis, std::int64_t index, std::vector<std::int64_t> shape,
                  std::string name) const;
  /// numpy.transpose: axis i of the result is axis order[i]. All values are read, unless the order stays.
  NpyReader transposed(const std::vector<std::size_t>& order) const;
  /// The same values with another shape. The file has C order.
  NpyReader reshaped(std::vector<std::int64_t> shape) const;
  bool is_fortran() const { return format_.fortran_order; }
  const std::vector<std::int64_t>& shape() const { return format_.shape; }
  NpyType type() const { return format_.type; }
  std::int64_t rows() const { return format_.shape.front(); }  ///< n
  std::int64_t row_size() const { return row_size_; }          ///< entries of a row

  /// Rows first … first + count − 1 as (count, row_size), each row in C order for any order of the file.
  /// Throws std::out_of_range for missing rows, EnvironmentError if reading fails.
  Matrix read(std::int64_t first, std::int64_t count) const;
  /// The same into a matrix, whose memory serves again where it is large enough.
  void read(std::int64_t first, std::int64_t count, Matrix& values) const;
  /// The same. Throws UserError with the place if an entry is NaN or infinite.
  Matrix read_finite(std::int64_t first, std::int64_t count) const;
  /// The same for integers and bools. Throws UserError for floating-point numbers, and for integers of 2^63
  /// and more.
  std::vector<std::int64_t> read_integers(std::int64_t first, std::int64_t count) const;

  /// The place of entry `entry` of a row: "row 5", "row 5, column 3", or "[5, 2, 3]" for three dimensions.
  std::string place_of(std::int64_t row, std::int64_t entry) const;
  /// Throws the error of this array. `message` completes "'X.npy' …", or "the array …" for memory.
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  void read_format();
  void check_format();
  std::string title() const;
  template <class Value>
  void read_values(std::int64_t first, std::int64_t count, Value* values) const;

  std::string place_, name_;
  std::shared_ptr<const InputFile> file_;  ///< null for an array in memory
  std::shared_ptr<const std::string> kept_;
  std::filesystem::path named_file_;  ///< of values in memory that a file held
  const char* memory_ = nullptr;
  NpyFormat format_;
  std::int64_t row_size_ = 0;
  // Of a slice: it consists of runs of so many entries, and a run begins so many entries after the one
  // before.
  std::int64_t run_ = 0, stride_ = 0;
  std::vector<std::int64_t> fortran_offsets_;  ///< for each entry of a row in C order, its column in the file
};

/// Labels of clusters or experts: rows first … first + count − 1 of an integer array, each in [0, limit).
/// Throws UserError with the row (and column), the value and the limits.
std::vector<int> read_labels(const NpyReader& array, std::int64_t first, std::int64_t count,
                             std::int64_t limit);

/// The limit of labels that are only names of clusters.
constexpr std::int64_t kLabelLimit = std::int64_t{1} << 31;

}  // namespace moelab
