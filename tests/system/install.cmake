# Installs a build into a folder, builds docs/example/program against it and runs it.
# cmake -DSOURCE=… -DBUILD=… -DFOLDER=… -DGENERATOR=… -DCOMPILER=… -P install.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE printed)
  set(printed "${printed}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/moelab)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/docs/example/program -B ${FOLDER}/build
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${FOLDER}/moelab)
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${FOLDER}/build/nearest)
# Clusters far apart, with three experts each: nearly every expert serves one.
string(REGEX MATCH "purity ([0-9.]+)" found "${printed}")
if(NOT found OR CMAKE_MATCH_1 LESS 0.9)
  message(FATAL_ERROR "the example printed: ${printed}")
endif()
run(${FOLDER}/moelab/bin/moelab validate ${FOLDER}/moelab/share/moelab/scenarios/dikkala2023/fig3.json)
file(REMOVE_RECURSE ${FOLDER})
