# Writes the style and the script of report pages, plots/painters/page.css and page.js, as C++ strings into OUTPUT.
file(READ ${SOURCE}/plots/painters/page.css style)
file(READ ${SOURCE}/plots/painters/page.js script)
file(WRITE ${OUTPUT} "#include \"plots/painters/page_files.h\"

namespace moelab {

const char* const kPageStyle = R\"css(\n${style})css\";
const char* const kPageScript = R\"js(\n${script})js\";

}  // namespace moelab
")
