# Writes HEADER with the text of each of FILES as a constant of its name: live.js is embedded::live_js.
# Scripts are longer than the standard asks compilers to take; all of ours do.
set(text "#pragma once\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#include <string_view>\n\nnamespace normscope::embedded {\n\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(REPLACE "." "_" name ${name})
  file(READ ${file} content)
  string(APPEND text "inline constexpr std::string_view ${name} = R\"embedded(${content})embedded\";\n\n")
endforeach()
file(WRITE ${HEADER} "${text}}  // namespace normscope::embedded\n")
