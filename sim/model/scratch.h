#pragma once

/// Arrays that a part of a model writes while it works: nothing that has to be kept, copied or compared.

namespace moelab {

/// What make_scratch() of a router, expert bank or block returns and its passes take back; each derives its
/// own. Backward passes read what the forward pass of the same batch left here.
class Scratch {
 public:
  virtual ~Scratch() = default;
  /// That of the block inside, where a block wraps another.
  virtual Scratch& innermost() { return *this; }
};

}  // namespace moelab
