# For `make package`: Debian's interpreter looks for what packages bring in /usr/lib/python3/dist-packages, and below /usr/local elsewhere.
file(GLOB found ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/lib/python3.*/dist-packages)
if(found)
  file(MAKE_DIRECTORY ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/lib/python3)
  file(RENAME ${found} ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/lib/python3/dist-packages)
  get_filename_component(left ${found} DIRECTORY)
  file(REMOVE_RECURSE ${left})
endif()
