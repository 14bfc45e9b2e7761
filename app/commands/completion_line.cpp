// A command line read as far as it goes: what it gives, and what is asked for next.

#include <algorithm>

#include "app/commands/completion.h"
#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool is_flag(const Option& option) {
  return std::holds_alternative<bool*>(option.value);
}

bool is_list(const Option& option) {
  return std::holds_alternative<std::vector<std::string>*>(option.value) ||
         std::holds_alternative<std::vector<std::filesystem::path>*>(option.value);
}

bool is_path(const Option& option) {
  return std::holds_alternative<std::filesystem::path*>(option.value) ||
         std::holds_alternative<std::vector<std::filesystem::path>*>(option.value);
}

/// Gives an option its value, but for numbers, which no completion asks for.
void give(const Option& option, const std::string& text) {
  const auto set = [&](auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, std::filesystem::path>) {
      *value = text;
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>> ||
                         std::is_same_v<Value, std::vector<std::filesystem::path>>) {
      value->push_back(text);
    }
  };
  std::visit(set, option.value);
}

Candidates candidates_of(const Option& option, const Arguments& given, const std::string& word) {
  Candidates candidates;
  if (option.completes) {
    candidates = option.completes(given, word);
  } else if (const NameCheck* names = option.check.target<NameCheck>()) {
    for (const std::string& name : names->names) candidates.words.push_back({name});
  } else if (is_path(option)) {
    candidates.files = Candidates::Files::any;
  }
  return candidates;
}

/// What stands behind a verb, word by word.
class LineBehindVerb {
 public:
  explicit LineBehindVerb(const Verb& verb) : call_(verb.call(given_)) {
    for (const Option& option : call_.options) {
      if (!option.name.starts_with("--")) places_.push_back(&option);
    }
  }
  LineBehindVerb(const LineBehindVerb&) = delete;
  LineBehindVerb& operator=(const LineBehindVerb&) = delete;

  void take(const std::string& word) {
    if (open_) {
      give(*open_, word);
      open_ = nullptr;
    } else if (word == "--" && !only_places_) {
      only_places_ = true;
    } else if (word.starts_with("--") && !only_places_) {
      take_option(word);
    } else if (!places_.empty()) {
      give(*places_.front(), word);
      if (!is_list(*places_.front())) places_.erase(places_.begin());
    }
  }

  Candidates next(const std::string& word) const {
    if (open_) return candidates_of(*open_, given_, word);
    const std::size_t equals = word.find('=');
    if (!only_places_ && word.starts_with("--") && equals != std::string::npos) {
      const Option* const option = find(word.substr(0, equals));
      if (!option || is_flag(*option)) return {};
      Candidates values = candidates_of(*option, given_, word.substr(equals + 1));
      for (Candidates::Word& value : values.words) value.text.insert(0, word, 0, equals + 1);
      return values;
    }
    if (!only_places_ && (word.starts_with("-") || (word.empty() && places_.empty()))) return names();
    return places_.empty() ? Candidates{} : candidates_of(*places_.front(), given_, word);
  }

 private:
  const Option* find(const std::string& name) const {
    const auto found = std::find_if(call_.options.begin(), call_.options.end(),
                                    [&](const Option& option) { return option.name == name; });
    return found == call_.options.end() ? nullptr : &*found;
  }

  void take_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const Option* const option = find(word.substr(0, equals));
    if (!option) return;
    used_.push_back(option);
    if (is_flag(*option)) return;
    if (equals == std::string::npos) {
      open_ = option;
    } else {
      give(*option, word.substr(equals + 1));
    }
  }

  /// Options that the line does not have yet, or may have again.
  Candidates names() const {
    Candidates candidates;
    for (const Option& option : call_.options) {
      const bool is_used = std::find(used_.begin(), used_.end(), &option) != used_.end();
      if (option.name.starts_with("--") && (!is_used || is_list(option)))
        candidates.words.push_back({option.name, option.help});
    }
    candidates.words.push_back({"--help", "explain the verb"});
    return candidates;
  }

  Arguments given_;
  VerbCall call_;
  std::vector<const Option*> places_;  ///< known by their place, from the next one on
  std::vector<const Option*> used_;
  const Option* open_ = nullptr;  ///< its value comes next
  bool only_places_ = false;      ///< behind "--"
};

Candidates candidates_at_end(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  Candidates candidates;
  if (words.size() == 1) {
    for (const Verb& verb : verbs()) candidates.words.push_back({verb.name, verb.help});
    if (words.front().starts_with("-")) candidates.words = {{"--help"}, {"--version"}};
    return candidates;
  }
  const auto verb = std::find_if(verbs().begin(), verbs().end(),
                                 [&](const Verb& each) { return each.name == words.front(); });
  if (verb == verbs().end()) return {};
  LineBehindVerb line(*verb);
  for (std::size_t i = 1; i + 1 < words.size(); ++i) line.take(words[i]);
  return line.next(words.back());
}

bool is_control(char character) {
  const auto code = static_cast<unsigned char>(character);
  return code < 0x20 || code == 0x7f;
}

}  // namespace

Candidates offer_scenario_files(const Arguments&, const std::string&) {
  return {{}, Candidates::Files::scenarios};
}

Candidates offer_folders(const Arguments&, const std::string&) {
  return {{}, Candidates::Files::folders};
}

Candidates offer_metrics(const Arguments&, const std::string&) {
  Candidates candidates;
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics)
      candidates.words.push_back({metric.name, metric.help});
  }
  return candidates;
}

Candidates complete(const std::vector<std::string>& words) {
  Candidates candidates;
  try {
    candidates = candidates_at_end(words);
  } catch (const std::exception&) {
    return {};
  }
  std::erase_if(candidates.words, [&](const Candidates::Word& word) {
    return !word.text.starts_with(words.back()) || word.text.starts_with(':') ||
           std::any_of(word.text.begin(), word.text.end(), is_control);
  });
  for (Candidates::Word& word : candidates.words)
    std::replace_if(word.help.begin(), word.help.end(), is_control, ' ');
  return candidates;
}

}  // namespace moelab
