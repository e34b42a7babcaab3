#pragma once
// Work beside the interpreter: another thread does it without the interpreter's lock, while the calling one looks for
// Ctrl-C and tells how far it is.
#include <pybind11/pybind11.h>

#include <functional>
#include <memory>

#include "questions.h"

namespace normscope::python {

// What waits for the work, every tenth of a second and at the end: (done, total, notes). None: nobody.
using Tell = pybind11::object;

// Calls work(watch), which must own all it needs: after Ctrl-C it is asked to stop, and if it does not within a second,
// KeyboardInterrupt is raised all the same and the work left to end by itself. Rethrows what it throws.
void run_in_background(std::function<void(Watch&)> work, const Tell& tell = pybind11::none());

// An object that work owns; let go of with the interpreter's lock.
std::shared_ptr<const void> keep_alive(const pybind11::object& object);

// At the end of the interpreter: work that was left to itself may not outlive it, nor daemon threads come back to it.
void wait_for_abandoned_work();
// Once: children begin without work of their parents.
void prepare_for_forks();

}  // namespace normscope::python
