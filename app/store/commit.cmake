# Writes the header OUTPUT with the commit that is being built; run at every build, touches the file on change only.
cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND git describe --always --dirty
  WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
  OUTPUT_VARIABLE commit
  RESULT_VARIABLE status
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MOELAB_COMMIT \"@commit@\"\n" @ONLY)
