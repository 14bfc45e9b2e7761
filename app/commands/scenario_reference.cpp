#include <fmt/format.h>

#include <map>

#include "app/commands/documents.h"
#include "app/commands/shape_text.h"
#include "app/metrics/metric_groups.h"
#include "app/report/markdown.h"
#include "app/scenario/scenario.h"

namespace moelab {
namespace {

constexpr const char* kIntroduction =
    "# Scenario reference\n\n"
    "Made from the table that checks scenarios; `moelab docs` writes it anew, `moelab list` prints the parts "
    "that have kinds. A scenario is one JSON object. Its fields are named by dotted paths everywhere (arms, "
    "sweep, `--set`, columns of the export), an entry of a list by its index (`figures.0.y`); an unknown one "
    "is an error. An object that has kinds may be written as the bare name of one whose fields all have "
    "defaults: `\"soft\"` for `{\"kind\": \"soft\"}`.\n";

/// What a value may be; the fields of objects stand in sections of their own.
std::string value_text(const Shape& shape) {
  if (shape.type == Shape::Type::object) return "object";
  if (shape.type == Shape::Type::list) return "list of " + value_text(*shape.element);
  return shape_text(shape);
}

/// Sections, each written once: a shape that stands in several places has its section at the first.
class Reference {
 public:
  std::string text() {
    add("Scenario", "", scenario_shape());
    std::string text = kIntroduction;
    for (const std::string& section : sections_) text += section;
    return text;
  }

 private:
  /// Adds the section of `shape` under `heading` and returns the heading under which it stands.
  std::string add(const std::string& heading, const std::string& path, const Shape& shape) {
    const std::size_t place = sections_.size();
    sections_.emplace_back();  // before those of the fields
    std::string body;
    if (shape.type == Shape::Type::object) {
      body = fields_table(shape.fields, path, "");
    } else {
      body = fmt::format("\nKinds, named by `{}`:\n", shape.tag);
      for (const Kind& kind : shape.kinds) {
        body += fmt::format("\n**{}**: {}\n", markdown_text(kind.name), markdown_text(kind.help));
        if (!kind.fields.empty()) body += fields_table(kind.fields, path, " of " + kind.name);
        if (path == "metrics") body += metrics_table(kind.name);
      }
    }
    const auto [known, is_new] = headings_.try_emplace(body, heading);
    if (is_new) sections_[place] = fmt::format("\n## {}\n{}", markdown_text(heading), body);
    return known->second;
  }

  /// The shapes with fields of their own within a value: an object, a variant, elements of a list, …
  static void find_sections(const Shape& shape, std::vector<const Shape*>& found) {
    if (shape.type == Shape::Type::object || shape.type == Shape::Type::variant) found.push_back(&shape);
    if (shape.element) find_sections(*shape.element, found);
    for (const Shape& alternative : shape.alternatives) find_sections(alternative, found);
  }

  std::string fields_table(const std::vector<Field>& fields, const std::string& path,
                           const std::string& owner) {
    std::string table = "\n| field | value | | meaning |\n|---|---|---|---|\n";
    for (const Field& field : fields) {
      const std::string field_path = join_path(path, field.name);
      std::vector<const Shape*> inner;
      find_sections(field.shape, inner);
      std::string value = markdown_text(value_text(field.shape));
      for (const Shape* shape : inner) {
        const std::string heading = add(field_path + owner, field_path, *shape);
        value = fmt::format("[{}](#{})", value, anchor(heading));
      }
      table += fmt::format("| `{}` | {} | {} | {} |\n", field.name, value, markdown_text(default_text(field)),
                           markdown_text(field.help));
    }
    return table;
  }

  static std::string metrics_table(const std::string& group) {
    const std::string needs = needs_of_group_text(group);
    std::string table = needs.empty() ? "" : fmt::format("\nAll of these need {}.\n", needs);
    table += "\n| metric | meaning | needs |\n|---|---|---|\n";
    for (const MetricGroup::Metric& metric : metrics_of_group(group)) {
      table += fmt::format("| `{}` | {} | {} |\n", metric.name, markdown_text(metric.help),
                           markdown_text(needs_text(metric.needs)));
    }
    return table;
  }

  std::vector<std::string> sections_;
  std::map<std::string, std::string> headings_;  ///< of bodies
};

}  // namespace

std::string scenario_schema() {
  return scenario_file_schema().dump(2) + "\n";
}

std::string scenario_reference() {
  return Reference().text();
}

}  // namespace moelab
