#include "cli/program.h"

int main(int argc, char** argv) { return doppler::cli::run_program(argc, argv); }
