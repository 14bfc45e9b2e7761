# Installs a build into a folder, builds docs/example/program against it and runs it.
# cmake -DSOURCE=… -DBUILD=… -DFOLDER=… -DGENERATOR=… -DCOMPILER=… -DFLAGS=… -P install.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE printed)
  set(printed "${printed}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/moelab)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/docs/example/program -B ${FOLDER}/build
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${FOLDER}/moelab)
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${FOLDER}/build/nearest)
# Clusters far apart, with three experts each: nearly every expert serves one.
string(REGEX MATCH "purity ([0-9.]+)" found "${printed}")
if(NOT found OR CMAKE_MATCH_1 LESS 0.9)
  message(FATAL_ERROR "the example printed: ${printed}")
endif()
# A model of typed options and the scenario that says the same end with the same loss, to the last digit.
run(${FOLDER}/build/two_layers)
string(REGEX MATCH "test_loss_soft ([0-9.e+-]+)" found "${printed}")
set(of_program "${CMAKE_MATCH_1}")
set(scenario ${SOURCE}/docs/example/program/two_layers.json)
run(${FOLDER}/moelab/bin/moelab run ${scenario} --out ${FOLDER}/run)
run(${FOLDER}/moelab/bin/moelab export ${FOLDER}/run)
string(REGEX REPLACE "\n.*" "" header "${printed}")
string(REGEX REPLACE "^[^\n]*\n([^\n]*).*" "\\1" row "${printed}")
string(REPLACE "," ";" header "${header}")
string(REPLACE "," ";" row "${row}")
list(FIND header test_loss_soft place)
list(GET row ${place} of_scenario)
if(NOT of_program OR NOT of_program EQUAL of_scenario)
  message(FATAL_ERROR "two_layers: the program has ${of_program}, the scenario ${of_scenario}")
endif()
run(${FOLDER}/moelab/bin/moelab validate ${FOLDER}/moelab/share/moelab/scenarios/dikkala2023/fig3.json)
file(REMOVE_RECURSE ${FOLDER})
