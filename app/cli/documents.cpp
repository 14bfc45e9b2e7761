#include "app/cli/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <iterator>
#include <map>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/check.h"
#include "app/cli/completion.h"
#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "plots/report/table.h"

namespace moelab {
namespace {

/// Larger bounds only keep a count exact. Texts leave them out.
constexpr double kReadableBound = 1e15;

std::string number_text(const std::string& noun, const Shape& shape) {
  const bool has_minimum = std::isfinite(shape.minimum);
  const bool has_maximum = std::isfinite(shape.maximum) && shape.maximum < kReadableBound;
  if (has_minimum && has_maximum) {
    return fmt::format("{} in {}{}, {}]", noun, shape.exclusive_minimum ? "(" : "[", shape.minimum,
                       shape.maximum);
  }
  if (has_minimum) return fmt::format("{} {} {}", noun, shape.exclusive_minimum ? ">" : "≥", shape.minimum);
  if (has_maximum) return fmt::format("{} ≤ {}", noun, shape.maximum);
  return noun;
}

template <class Items, class Name>
std::string joined_text(const Items& items, const std::string& separator, Name name) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(name(item));
  return fmt::format("{}", fmt::join(names, separator));
}

}  // namespace

std::string shape_text(const Shape& shape) {
  switch (shape.type) {
    case Shape::Type::boolean:
      return "true | false";
    case Shape::Type::count:
      return number_text("whole number", shape);
    case Shape::Type::real:
      return number_text("number", shape);
    case Shape::Type::text:
      return "text";
    case Shape::Type::choice:
      return joined_text(shape.choices, " | ", [](const std::string& name) { return name; });
    case Shape::Type::list:
      return fmt::format("list of {}", shape_text(*shape.element));
    case Shape::Type::map:
      return fmt::format("object of {}", shape_text(*shape.element));
    case Shape::Type::object:
      return fmt::format("{{{}}}",
                         joined_text(shape.fields, ", ", [](const Field& field) { return field.name; }));
    case Shape::Type::variant:
      return joined_text(shape.kinds, " | ", [](const Kind& kind) { return kind.name; });
    case Shape::Type::either:
      return joined_text(shape.alternatives, " or ", [](const Shape& one) { return shape_text(one); });
    case Shape::Type::any:
      return "any value";
  }
  return "any value";
}

std::string default_text(const Field& field) {
  if (!field.default_value) return "required";
  return field.default_value->is_null() ? "optional" : "default " + field.default_value->dump();
}

std::string needs_text(const std::vector<const Need*>& all) {
  std::vector<std::string> told;
  for (const Need* const need : all) {
    const bool is_always_met = need->is_met == needs::model.is_met;
    if (!is_always_met && std::find(told.begin(), told.end(), need->what) == told.end())
      told.emplace_back(need->what);
  }
  return fmt::format("{}", fmt::join(told, "; "));
}

std::string needs_of_group_text(const std::string& group) {
  for (const MetricGroup& known : metric_groups()) {
    if (known.name == group) return needs_text(known.needs);
  }
  return "";
}

namespace {

constexpr const char* kIntroduction =
    "# Scenario reference\n\n"
    "Every field of a scenario, by section and kind. `moelab list` prints the parts that have kinds.\n\nA "
    "scenario is one JSON object. Dotted paths name its fields "
    "everywhere: in arms, in the sweep, in `--set` and in columns of the export. An entry of a list has its "
    "index (`figures.0.y`). An unknown field is an error.\n\nAn object with kinds may be written as the bare "
    "name of a kind whose fields all have defaults. `\"soft\"` stands for `{\"kind\": \"soft\"}`.\n\n`moelab "
    "docs` makes this page from the table that checks scenarios.\n";

/// The values of a shape. The fields of objects have their own sections.
std::string value_text(const Shape& shape) {
  if (shape.type == Shape::Type::object) return "object";
  if (shape.type == Shape::Type::list) return "list of " + value_text(*shape.element);
  return shape_text(shape);
}

/// A text that is equal for shapes whose sections would be equal.
std::string shape_key(const Shape& shape);

std::string field_key(const Field& field) {
  return fmt::format("{}\n{}\n{}\n{}\n", field.name, default_text(field), field.help, shape_key(field.shape));
}

std::string shape_key(const Shape& shape) {
  std::string key = shape_text(shape);
  for (const Field& field : shape.fields) key += field_key(field);
  for (const Kind& kind : shape.kinds)
    for (const Field& field : kind.fields) key += field_key(field);
  if (shape.element) key += shape_key(*shape.element);
  for (const Shape& alternative : shape.alternatives) key += shape_key(alternative);
  return key;
}

bool has_field(const std::vector<Field>& fields, const Field& wanted) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Field& field) { return field_key(field) == field_key(wanted); });
}

/// The fields that all kinds have, in the order of the first kind. Few kinds repeat theirs.
std::vector<Field> shared_fields(const std::vector<Kind>& kinds) {
  constexpr std::size_t kManyKinds = 5;
  std::vector<Field> shared;
  if (kinds.size() < kManyKinds) return shared;
  std::copy_if(kinds.front().fields.begin(), kinds.front().fields.end(), std::back_inserter(shared),
               [&](const Field& field) {
                 return std::all_of(kinds.begin(), kinds.end(),
                                    [&](const Kind& kind) { return has_field(kind.fields, field); });
               });
  return shared;
}

/// What the kinds at a path are kinds of.
std::string noun_at(const std::string& path) {
  static const std::map<std::string, std::string> nouns = {
      {"data", "generator"}, {"metrics", "metric group"}, {"claims", "claim"}, {"figures", "figure"}};
  const auto found = nouns.find(path);
  return found == nouns.end() ? "kind" : found->second;
}

/// The kind in headings of its fields. An anchor keeps no operators.
std::string owner_of(const Kind& kind) {
  const bool is_operator = std::none_of(kind.name.begin(), kind.name.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0;
  });
  return is_operator ? " of comparisons" : " of " + kind.name;
}

/// Collects the sections of the reference. A shape that occurs at several places has one section, at the
/// first.
class Reference {
 public:
  std::string text() {
    add("Scenario", "", scenario_shape());
    std::string text = kIntroduction;
    for (const std::string& section : sections_) text += section;
    return text;
  }

 private:
  /// Adds the section of `shape`, unless it exists. Returns its heading.
  std::string add(const std::string& heading, const std::string& path, const Shape& shape) {
    const std::size_t place = sections_.size();
    sections_.emplace_back();  // its place, before the sections of the fields
    std::string body;
    if (shape.type == Shape::Type::object) {
      body = fields_table(shape.fields, path, "");
    } else {
      const std::vector<Field> shared = shared_fields(shape.kinds);
      if (!shared.empty())
        body += fmt::format("\n**Fields of every {}**\n{}", noun_at(path), fields_table(shared, path, ""));
      body += fmt::format("\nKinds, named by `{}`:\n", shape.tag);
      for (const Kind& kind : shape.kinds) {
        body += fmt::format("\n**{}**: {}\n", markdown_text(kind.name), markdown_text(kind.help));
        std::vector<Field> own = kind.fields;
        std::erase_if(own, [&](const Field& field) { return has_field(shared, field); });
        if (!own.empty()) body += fields_table(own, path, owner_of(kind));
        if (path == "metrics") body += metrics_table(kind.name);
      }
    }
    const auto [known, is_new] = headings_.try_emplace(body, heading);
    if (is_new) sections_[place] = fmt::format("\n## {}\n{}", markdown_text(heading), body);
    return known->second;
  }

  /// Finds the objects and variants within a value: itself, the elements of a list, each alternative.
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
  std::map<std::string, std::string> headings_;  ///< by the body of the section
};

}  // namespace

std::string scenario_schema() {
  return scenario_file_schema().dump(2) + "\n";
}

std::string scenario_reference() {
  return Reference().text();
}

std::string theorem_catalogue(const std::vector<const Check*>& checks,
                              const std::vector<CheckFinding>& findings) {
  std::string text =
      "# Theorem checks\n\n"
      "Every statement that the program checks, by paper. `moelab check ID` runs one check, or all checks "
      "whose ids begin with ID. It prints the predicted and the measured value with "
      "an error bound. The exit status is 1 if a verdict is unexpected.\n\nA statement that is wrong as "
      "printed has two checks. `as_printed` is expected to fail, and `corrected` to hold.\n\n`moelab docs` "
      "makes this page from the table of checks.\n";
  std::string source;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Check& check = *checks[i];
    // A source is the work and the place in it: "Dikkala et al. 2023, Lemma 1".
    const std::string work = check.source.substr(0, check.source.find(','));
    if (work != source) text += fmt::format("\n## {}\n", work);
    source = work;
    text += fmt::format("\n### {}\n\n{}.\n\n> {}\n\nExpected: {}.\n", check.id, check.source,
                        markdown_text(check.statement), to_string(check.expected));
    if (!findings[i].hypotheses.empty()) text += "\nHypotheses:\n\n";
    for (const Hypothesis& hypothesis : findings[i].hypotheses)
      text += fmt::format("- {}{}\n", markdown_text(hypothesis.text), hypothesis.met ? "" : " (not met)");
  }
  return text;
}

namespace {

/// The kind of value that an option takes; empty for a flag.
std::string value_text(const Option& option) {
  if (const NameCheck* const names = option.rules.check.target<NameCheck>())
    return fmt::format("{}", fmt::join(names->names, " | "));
  if (option.is_flag()) return "";
  if (std::holds_alternative<int*>(option.value)) return "whole number";
  if (std::holds_alternative<double*>(option.value)) return "number";
  return option.is_path() ? "path" : "text";
}

}  // namespace

std::string command_reference() {
  std::string text =
      "# Commands\n\n"
      "Every command with its options. `moelab COMMAND --help` prints the same. `moelab docs` makes this "
      "page "
      "from the table of commands.\n";
  for (const Verb& verb : verbs()) {
    const VerbCall call = verb.call();
    std::string usage = "moelab " + verb.name, table = "| option | value | meaning |\n|---|---|---|\n";
    for (const Option& option : call.options.list) {
      const std::string name = option.name + (option.is_list() && !option.is_named() ? "…" : "");
      if (!option.is_named()) usage += " " + (option.rules.required ? name : "[" + name + "]");
      table += fmt::format("| `{}` | {} | {} |\n", option.name, markdown_text(value_text(option)),
                           markdown_text(option.help));
    }
    text += fmt::format("\n## {}\n\n{}.\n\n```sh\n{} [options]\nmoelab {}\n```\n\n{}", verb.name,
                        markdown_text(verb.help), usage, verb.example, table);
  }
  return text;
}

namespace {

constexpr const char *kCommandsPage = "commands.md", *kScenarioPage = "scenario.md",
                     *kSchemaDocument = "scenario.schema.json", *kTheoremsPage = "theorems.md";

struct DocsOptions {
  std::filesystem::path out = "docs";
  int threads = 0;
  bool json = false;

  void bind(VerbOptions& options) {
    options.add("--out", &out, "folder (default: docs)",
                {.candidates = offer_files(Candidates::Files::folders)});
    bind_threads(options, threads, kCheckThreads);
    bind_json(options, json);
  }
};

/// Writes the documents that are made from the program's tables.
int write_documents(const DocsOptions& options) {
  check_output_folder(options.out, "--out");
  std::vector<std::filesystem::path> files;
  for (const char* name : {kScenarioPage, kSchemaDocument, kTheoremsPage, kCommandsPage})
    check_output_file(files.emplace_back(options.out / name), "--out");
  const std::vector<const Check*> all = chosen_checks(checks(), {});
  const std::vector<CheckFinding> findings = run_checks(all, {}, thread_count(options.threads));
  replace_file(files[0], scenario_reference());
  replace_file(files[1], scenario_schema());
  replace_file(files[2], theorem_catalogue(all, findings));
  replace_file(files[3], command_reference());
  print_files(files, options.json);
  return 0;
}

}  // namespace

Verb docs_verb() {
  return make_verb(
      "docs",
      "Write the documents made from the program's tables: commands.md, scenario.md, theorems.md and "
      "scenario.schema.json",
      "docs --out docs", write_documents);
}

}  // namespace moelab
