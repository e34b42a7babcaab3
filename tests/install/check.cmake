# Installs the build to a prefix, moves the prefix elsewhere, and configures, builds and runs a program there that
# knows nothing but find_package(normscope).
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "failed: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
set(prefix ${SCRATCH}/moved)
run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${SCRATCH}/installed)
file(RENAME ${SCRATCH}/installed ${prefix})

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/consumer -G ${GENERATOR} -D CMAKE_BUILD_TYPE=${CONFIG}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer --config ${CONFIG})
run(${SCRATCH}/consumer/consumer)
if(NOT output STREQUAL "selectable\nselectable\nselectable\nselectable\nunselectable\n")
  message(FATAL_ERROR "the consumer printed other verdicts than a square and its centre have:\n${output}")
endif()

run(${prefix}/bin/normscope --version)
if(NOT output MATCHES "${VERSION}")
  message(FATAL_ERROR "the installed program does not tell its version, ${VERSION}, but:\n${output}")
endif()

# A package that names the tree it was built in works only on this machine.
file(GLOB_RECURSE files ${prefix}/*.cmake)
foreach(file ${files})
  file(READ ${file} text)
  string(FIND "${text}" "${BUILD}" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} names the build directory ${BUILD}")
  endif()
endforeach()
