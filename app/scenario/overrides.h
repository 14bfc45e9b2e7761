#pragma once

/// Overrides: dotted paths whose values replace what stands there (profiles, --set, arms, sweep points).

#include <span>
#include <string>
#include <vector>

#include "app/json/json.h"
#include "app/json/schema.h"
#include "sim/base/error.h"

namespace moelab {

struct Override {
  std::string path;     ///< what is replaced: "model.router.trainable"
  Json value;           ///< by what; null takes the value back to its default
  std::string place;    ///< where the override is written: "arms.frozen.model.router.trainable"
  std::string element;  ///< which element of the list at `place` the value is: "[2]", or empty
};

/// The overrides of {path: value, …} written at `place`.
std::vector<Override> read_overrides(const Json& object, const std::string& place);

/// The overrides of texts "path=value" given with this option; a value that is not JSON is taken as a string.
std::vector<Override> read_settings(const std::vector<std::string>& settings,
                                    const std::string& option = "--set");

/// The same overrides. Throws UserError at the place of one that a later one of them replaces, so that it
/// would be without effect ("model.router.trainable" before "model.router"); one below an earlier one adds to
/// it.
std::vector<Override> kept(std::vector<Override> overrides);

/// Applies overrides in their order. A number in a path is the index of an entry where it meets a list
/// ("figures.0.y"). A name that stands for an object ("soft", one learning rate for both
/// groups) becomes that object where a path leads into it. train.steps and train.epochs replace each other.
/// Paths that do not exist are left for resolve to refuse. Throws UserError at the place of an override that
/// leads into a value without fields, or to an entry that a list does not have.
void apply_overrides(const Shape& shape, std::span<const Override> overrides, Json& document);

/// Whether `path` is `ancestor` or lies below it.
bool is_within(const std::string& path, const std::string& ancestor);

/// Whether nothing is left of a value at `path` when one at `by` is set after it: `path` is `by`, lies below
/// it, or is what it takes the place of (train.steps and train.epochs).
bool is_replaced(const std::string& path, const std::string& by);

/// What the user is told of an error: at the place of the override that wrote the refused value, or where it
/// stands when none did.
UserError at_override(const InvalidOption& error, const Shape& shape, std::span<const Override> overrides,
                      const Json& document);

}  // namespace moelab
