#pragma once

/// The readers of what users and disks hand in, each as a function of arbitrary bytes. It returns whether the
/// bytes were accepted; refusals are UserErrors. Anything else that is thrown, and every finding of a
/// sanitizer, is a defect: std::logic_error where a property does not hold. libFuzzer calls these functions,
/// and corpus_test.cpp with the corpora.

#include "tests/fuzz/array_targets.h"
#include "tests/fuzz/dump_targets.h"
#include "tests/fuzz/scenario_targets.h"
#include "tests/fuzz/store_targets.h"
