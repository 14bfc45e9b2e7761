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

/// The overrides of --set texts "path=value"; a value that is not JSON is taken as a string.
std::vector<Override> read_settings(const std::vector<std::string>& settings);

/// Applies overrides in their order. A name that stands for an object ("soft", one learning rate for both
/// groups) becomes that object where a path leads into it. train.steps and train.epochs replace each other.
/// Paths that do not exist are left for resolve to refuse. Throws UserError at the place of an override that
/// leads into a value without fields.
void apply_overrides(const Shape& shape, std::span<const Override> overrides, Json& document);

/// Whether `path` is `ancestor` or lies below it.
bool is_within(const std::string& path, const std::string& ancestor);

/// What the user is told of an error: at the place of the override that wrote the refused value, or where it
/// stands when none did.
UserError at_override(const InvalidOption& error, const Shape& shape, std::span<const Override> overrides,
                      const Json& document);

}  // namespace moelab
