#include "app/dump/array_file.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "app/scenario/json.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

using SharedFile = std::shared_ptr<const InputFile>;

[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::string& place,
                              const std::string& message) {
  throw UserError(place, fmt::format("'{}' {}", file.string(), message));
}

SharedFile open_given(const std::filesystem::path& file, const std::string& place) {
  std::error_code unseen;
  const std::filesystem::file_status status = std::filesystem::status(file, unseen);
  if (status.type() == std::filesystem::file_type::not_found)
    throw UserError(place, "no file '" + file.string() + "'");
  if (!unseen && !std::filesystem::is_regular_file(status)) refuse_file(file, place, "is no file");
  return std::make_shared<InputFile>(file);
}

std::string bytes_at(const InputFile& file, std::uint64_t offset, std::uint64_t count) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  file.read(offset, bytes.data(), bytes.size());
  return bytes;
}

std::string beginning(const InputFile& file, std::uint64_t most) {
  return bytes_at(file, 0, std::min(most, file.size()));
}

/// A little-endian number of `width` bytes.
std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

constexpr std::string_view kZipStart = "PK\x03\x04", kNumpyStart = "\x93NUMPY";

/// Whether the file is a pickle by its ending or its first bytes. The length of a header of .safetensors can
/// look like these bytes.
bool is_pickle(std::string_view start, const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  const bool is_safetensors = start.size() > 8 && start[8] == '{';
  return (!is_safetensors && start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5) ||
         ending == ".pkl" || ending == ".pickle" ||
         ((ending == ".pt" || ending == ".pth" || ending == ".bin"));
}

[[noreturn]] void refuse_pickle(const std::filesystem::path& file, const std::string& place) {
  const std::string safe = file.stem().string() + ".safetensors";
  refuse_file(file, place,
              fmt::format("is a pickle, which can run code and is never loaded; in Python:\n"
                          "  import torch, safetensors.torch; d = torch.load('{}')\n"
                          "  safetensors.torch.save_file({{k: v.contiguous() for k, v in d.items()}}, '{}')",
                          file.filename().string(), safe));
}

/// Whether the beginning of a .npy file says that it holds texts.
bool holds_texts(std::string_view start) {
  const std::size_t descr = start.find("'descr': '");
  return start.starts_with(kNumpyStart) && descr != std::string::npos && start.size() >= descr + 12 &&
         (start[descr + 11] == 'U' || start[descr + 11] == 'S');
}

void append_letter(std::uint64_t letter, std::string& text) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (letter >> shift & 0x3F)); };
  if (letter < 0x80) {
    text += static_cast<char>(letter);
  } else if (letter < 0x800) {
    text += static_cast<char>(0xC0 | letter >> 6);
    tail(0);
  } else if (letter < 0x10000) {
    text += static_cast<char>(0xE0 | letter >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | (letter >> 18 & 7));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Texts of the types <U and |S in the bytes of a .npy file.
std::vector<std::string> texts_of(std::string_view bytes) {
  const std::size_t descr = bytes.find("'descr': '");
  const char order = bytes[descr + 10], kind = bytes[descr + 11];
  std::size_t length = 0;
  std::from_chars(bytes.data() + descr + 12, bytes.data() + bytes.size(), length);
  const std::size_t major = static_cast<unsigned char>(bytes[6]);
  const std::size_t begin = major == 1 ? 10 + number_at(bytes, 8, 2) : 12 + number_at(bytes, 8, 4);
  std::vector<std::string> texts;
  if (length == 0 || length > bytes.size() || begin > bytes.size()) return texts;
  const std::size_t width = kind == 'U' ? 4 * length : length;
  for (std::size_t at = begin; at + width <= bytes.size(); at += width) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) {
      std::uint64_t letter = 0;
      for (std::size_t byte = 0, count = width / length; byte < count; ++byte)
        letter = letter << 8 |
                 static_cast<unsigned char>(bytes[at + i * count + (order == '>' ? byte : count - 1 - byte)]);
      if (letter == 0) break;
      append_letter(letter, text);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

// .npz

struct ZipMember {
  std::string name;
  bool is_deflated = false;
  std::uint64_t packed = 0, unpacked = 0, header = 0;
};

/// The members of a zip file by its central directory, zip64 included.
std::vector<ZipMember> zip_members(const InputFile& file, const std::string& place) {
  const auto refuse = [&](const std::string& why) {
    refuse_file(file.path(), place, "is a damaged .npz file: " + why);
  };
  constexpr std::uint64_t kEndRecord = 22, kLongestComment = 1u << 16;
  const std::uint64_t tail_size = std::min(file.size(), kEndRecord + kLongestComment);
  const std::string tail = bytes_at(file, file.size() - tail_size, tail_size);
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndRecord) refuse("it has no directory");
  std::uint64_t count = number_at(tail, end + 10, 2), size = number_at(tail, end + 12, 4),
                offset = number_at(tail, end + 16, 4);
  if (end >= 20 && tail.compare(end - 20, 4, "PK\x06\x07") == 0) {
    const std::uint64_t record = number_at(tail, end - 20 + 8, 8);
    if (record > file.size() || file.size() - record < 56) refuse("its directory lies outside");
    const std::string wide = bytes_at(file, record, 56);
    count = number_at(wide, 32, 8);
    size = number_at(wide, 40, 8);
    offset = number_at(wide, 48, 8);
  }
  if (offset > file.size() || size > file.size() - offset) refuse("its directory lies outside");
  const std::string directory = bytes_at(file, offset, size);
  std::vector<ZipMember> members;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    constexpr std::size_t kEntry = 46;
    if (directory.size() - at < kEntry || directory.compare(at, 4, "PK\x01\x02") != 0)
      refuse("its directory is cut off");
    const std::size_t name = number_at(directory, at + 28, 2), extra = number_at(directory, at + 30, 2),
                      comment = number_at(directory, at + 32, 2);
    if (directory.size() - at - kEntry < name + extra + comment) refuse("its directory is cut off");
    ZipMember member{directory.substr(at + kEntry, name)};
    const std::uint64_t method = number_at(directory, at + 10, 2);
    if (method != 0 && method != 8) refuse("it has a member of an unknown compression");
    member.is_deflated = method == 8;
    member.packed = number_at(directory, at + 20, 4);
    member.unpacked = number_at(directory, at + 24, 4);
    member.header = number_at(directory, at + 42, 4);
    // Numbers that four bytes cannot hold stand in the extra field 1, in this order.
    for (std::size_t field = at + kEntry + name; field + 4 <= at + kEntry + name + extra;) {
      const std::uint64_t kind = number_at(directory, field, 2), length = number_at(directory, field + 2, 2);
      std::size_t value = field + 4;
      for (std::uint64_t* const wide : {&member.unpacked, &member.packed, &member.header}) {
        if (kind != 1 || *wide != 0xFFFFFFFFu || value + 8 > directory.size()) continue;
        *wide = number_at(directory, value, 8);
        value += 8;
      }
      field += 4 + length;
    }
    members.push_back(std::move(member));
    at += kEntry + name + extra + comment;
  }
  return members;
}

constexpr std::uint64_t kNpyStart = kMaxNpyHeader + 12;

[[noreturn]] void refuse_member(const InputFile& file, const std::string& name, const std::string& place,
                                const std::string& why) {
  throw UserError(place, fmt::format("'{}:{}' {}", file.path().string(), name, why));
}

/// Where the bytes of a member begin.
std::uint64_t member_begin(const InputFile& file, const ZipMember& member, const std::string& name,
                           const std::string& place) {
  constexpr std::uint64_t kLocal = 30;
  if (member.header > file.size() || file.size() - member.header < kLocal)
    refuse_member(file, name, place, "lies outside the file");
  const std::string local = bytes_at(file, member.header, kLocal);
  const std::uint64_t begin = member.header + kLocal + number_at(local, 26, 2) + number_at(local, 28, 2);
  if (begin > file.size() || member.packed > file.size() - begin)
    refuse_member(file, name, place, "lies outside the file");
  return begin;
}

std::string unpacked_member(const InputFile& file, const ZipMember& member, const std::string& name,
                            const std::string& place) {
  const std::string packed = bytes_at(file, member_begin(file, member, name, place), member.packed);
  if (!member.is_deflated) return packed;
  // Deflate packs at most 1032 to one, which bounds what a member may claim.
  if (member.unpacked / 1032 > member.packed + 1)
    refuse_member(file, name, place, "claims more bytes than it can hold");
  std::string values(static_cast<std::size_t>(member.unpacked), '\0');
  libdeflate_decompressor* const decompressor = libdeflate_alloc_decompressor();
  const libdeflate_result result = libdeflate_deflate_decompress(decompressor, packed.data(), packed.size(),
                                                                 values.data(), values.size(), nullptr);
  libdeflate_free_decompressor(decompressor);
  if (result != LIBDEFLATE_SUCCESS) refuse_member(file, name, place, "is damaged: it cannot be unpacked");
  return values;
}

std::optional<std::vector<std::string>> member_texts(const InputFile& file, const ZipMember& member,
                                                     const std::string& name, const std::string& place) {
  if (!member.is_deflated) {
    constexpr std::uint64_t kStart = 128;
    const std::uint64_t begin = member_begin(file, member, name, place);
    if (!holds_texts(bytes_at(file, begin, std::min(member.packed, kStart)))) return std::nullopt;
  }
  const std::string bytes = unpacked_member(file, member, name, place);
  if (!holds_texts(bytes)) return std::nullopt;
  return texts_of(bytes);
}

NpyReader open_member(const SharedFile& file, const ZipMember& member, const std::string& name,
                      const std::string& place, std::optional<NpyType> stored_as) {
  const auto refuse = [&](const std::string& why) { refuse_member(*file, name, place, why); };
  std::uint64_t begin = 0;
  std::shared_ptr<std::string> values;
  std::string start;
  if (member.is_deflated) {
    values = std::make_shared<std::string>(unpacked_member(*file, member, name, place));
    start = values->substr(0, kNpyStart);
  } else {
    begin = member_begin(*file, member, name, place);
    start = bytes_at(*file, begin, std::min(member.packed, kNpyStart));
  }
  NpyFormat format;
  try {
    format = parse_npy_header(start);
  } catch (const std::runtime_error& refusal) {
    refuse(refusal.what());
  }
  if (member.unpacked != format.header_bytes + format.value_bytes())
    refuse(fmt::format("holds {} bytes, and {} needs {}", member.unpacked - format.header_bytes,
                       shape_text(format.shape), format.value_bytes()));
  if (stored_as && !is_float(format.type) && byte_size(format.type) == 2) format.type = *stored_as;
  if (values) return {std::move(values), std::move(format), place, name, file->path()};
  format.header_bytes += static_cast<std::size_t>(begin);
  return {file, std::move(format), place, name};
}

std::vector<NamedArray> npz_arrays(const SharedFile& file, const std::string& place,
                                   std::optional<NpyType> stored_as) {
  std::vector<NamedArray> arrays;
  for (const ZipMember& member : zip_members(*file, place)) {
    if (!member.name.ends_with(".npy")) {
      if (member.name.ends_with("data.pkl")) refuse_pickle(file->path(), place);
      continue;
    }
    const std::string name = member.name.substr(0, member.name.size() - 4);
    arrays.push_back({name, [=] { return open_member(file, member, name, place, stored_as); },
                      [=] { return member_texts(*file, member, name, place); }});
  }
  return arrays;
}

// .safetensors

constexpr std::array<std::pair<const char*, NpyType>, 13> kTensorTypes = {{{"F64", NpyType::float64},
                                                                           {"F32", NpyType::float32},
                                                                           {"F16", NpyType::float16},
                                                                           {"BF16", NpyType::bfloat16},
                                                                           {"I64", NpyType::int64},
                                                                           {"U64", NpyType::uint64},
                                                                           {"I32", NpyType::int32},
                                                                           {"U32", NpyType::uint32},
                                                                           {"I16", NpyType::int16},
                                                                           {"U16", NpyType::uint16},
                                                                           {"I8", NpyType::int8},
                                                                           {"U8", NpyType::uint8},
                                                                           {"BOOL", NpyType::boolean}}};

/// The length of the header; 0 where the file is none.
std::uint64_t tensor_header(std::string_view start, std::uint64_t size) {
  if (start.size() < 9 || start[8] != '{') return 0;
  const std::uint64_t length = number_at(start, 0, 8);
  return length > 1 && length <= size - 8 && length <= kMaxJsonBytes ? length : 0;
}

NpyReader open_tensor(const SharedFile& file, const Json& tensor, std::uint64_t first,
                      const std::string& name, const std::string& place, std::optional<NpyType> stored_as) {
  const auto refuse = [&](const std::string& why) {
    throw UserError(place, fmt::format("'{}:{}' {}", file->path().string(), name, why));
  };
  NpyFormat format;
  std::uint64_t begin = 0, end = 0;
  try {
    const std::string type = tensor.at("dtype").get<std::string>();
    const auto* const known = std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                                           [&](const auto& entry) { return type == entry.first; });
    if (known == kTensorTypes.end()) refuse(fmt::format("holds values of type {}, which is not read", type));
    format.type = known->second;
    for (const Json& length : tensor.at("shape")) {
      const std::int64_t value = length.get<std::int64_t>();
      if (value < 0 || value > std::int64_t{1} << 40) refuse("has a shape that no file can hold");
      format.shape.push_back(value);
    }
    begin = tensor.at("data_offsets").at(0).get<std::uint64_t>();
    end = tensor.at("data_offsets").at(1).get<std::uint64_t>();
  } catch (const Json::exception&) {
    refuse("has a malformed entry in the header");
  }
  if (begin > end || first > file->size() || end > file->size() - first) refuse("lies outside the file");
  double needed = static_cast<double>(byte_size(format.type));
  for (const std::int64_t length : format.shape) needed *= static_cast<double>(length);
  if (needed != static_cast<double>(end - begin))
    refuse(fmt::format("has {} bytes of values, and {} of {} needs {}", end - begin, shape_text(format.shape),
                       type_name(format.type), needed));
  format.header_bytes = static_cast<std::size_t>(first + begin);
  if (stored_as && !is_float(format.type) && byte_size(format.type) == 2) format.type = *stored_as;
  return {file, std::move(format), place, name};
}

std::vector<NamedArray> tensors(const SharedFile& file, std::uint64_t header, const std::string& place,
                                std::optional<NpyType> stored_as) {
  const Json document = parse_json(bytes_at(*file, 8, header), file->path().string());
  std::vector<NamedArray> arrays;
  for (const auto& [key, tensor] : document.items()) {
    if (key == "__metadata__") continue;
    const std::string name = key;
    const Json own = tensor;
    arrays.push_back({name, [=] { return open_tensor(file, own, 8 + header, name, place, stored_as); },
                      [] { return std::nullopt; }});
  }
  return arrays;
}

}  // namespace

bool is_array_file(const std::filesystem::path& file, const std::string& place) {
  const SharedFile opened = open_given(file, place);
  const std::string start = beginning(*opened, 16);
  return start.starts_with(kZipStart) || start.starts_with(kNumpyStart) || is_pickle(start, file) ||
         tensor_header(start, opened->size()) > 0 || file.extension() == ".npy";
}

std::vector<NamedArray> array_file(const std::filesystem::path& file, const std::string& place,
                                   std::optional<NpyType> stored_as) {
  const SharedFile opened = open_given(file, place);
  const std::string start = beginning(*opened, kMaxNpyHeader + 12);
  if (is_pickle(start, file)) refuse_pickle(file, place);
  if (start.starts_with(kZipStart)) return npz_arrays(opened, place, stored_as);
  if (const std::uint64_t header = tensor_header(start, opened->size()))
    return tensors(opened, header, place, stored_as);
  if (start.starts_with(kNumpyStart) && start.find("'|O'") != std::string::npos) {
    if (place == "--labels")
      refuse_file(file, place,
                  "holds Python objects, a pickle, which is never loaded; save array.astype(str) instead");
    refuse_file(file, place,
                fmt::format("holds Python objects, a pickle, which is never loaded; in Python:\n"
                            "  a = numpy.load('{}', allow_pickle=True)\n"
                            "  numpy.savez('{}.npz', **{{f'router_logits.{{i}}': x for i, x in enumerate(a) "
                            "if x is not None}})",
                            file.filename().string(), file.stem().string()));
  }
  const auto texts = [=]() -> std::optional<std::vector<std::string>> {
    if (!holds_texts(beginning(*opened, kMaxNpyHeader))) return std::nullopt;
    return texts_of(beginning(*opened, opened->size()));
  };
  return {{"", [=] { return NpyReader(file, place, nullptr, stored_as); }, texts}};
}

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0, held = 0;
  for (const char letter : text) {
    std::uint32_t value = 0;
    if (letter >= 'A' && letter <= 'Z')
      value = static_cast<std::uint32_t>(letter - 'A');
    else if (letter >= 'a' && letter <= 'z')
      value = static_cast<std::uint32_t>(letter - 'a' + 26);
    else if (letter >= '0' && letter <= '9')
      value = static_cast<std::uint32_t>(letter - '0' + 52);
    else if (letter == '+' || letter == '-')
      value = 62;
    else if (letter == '/' || letter == '_')
      value = 63;
    else
      return std::nullopt;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFF);
  }
  return bytes;
}

std::string read_given_file(const std::filesystem::path& file, const std::string& place) {
  const SharedFile opened = open_given(file, place);
  return beginning(*opened, opened->size());
}

}  // namespace moelab
