#pragma once
// Where this build and its sources lie: functions, whose one file is compiled in each checkout, so that the cache of a
// compiler serves the tests of all.
#include <string>

namespace normscope {

std::string program_path();   // the program
std::string source_path();    // the checkout
std::string campaign_path();  // the campaign against the exact oracle
std::string mpirun_path();    // empty: the build is without MPI

}  // namespace normscope
