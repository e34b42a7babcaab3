# Writes HEADER with the commit of the tree at SOURCE; leaves the file alone if it says so already.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR commit STREQUAL "")
  set(commit "unknown")
endif()
set(text "#define NORMSCOPE_COMMIT \"${commit}\"\n")
set(written "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} written)
endif()
if(NOT text STREQUAL written)
  file(WRITE ${HEADER} "${text}")
endif()
