// RUN: not tilepass-opt %s -p cze 2>&1 | %filecheck %s --check-prefix=NAME
// RUN: not tilepass-opt %s -p flatten-loop 2>&1 | %filecheck %s --check-prefix=OURS
// RUN: not tilepass-opt %s --splt-input-file 2>&1 | %filecheck %s --check-prefix=FLAG
// RUN: not tilepass-opt %s -p 'cse,' 2>&1 | %filecheck %s --check-prefix=SYNTAX
// RUN: not tilepass-opt %s -p 'cse@after:canonicalize' 2>&1 | %filecheck %s --check-prefix=ANCHOR
// RUN: not tilepass-opt %s -p 'tritongpu-pipeline{num-stagez=3}' 2>&1 | %filecheck %s --check-prefix=OPTION
// RUN: not tilepass-opt %s -p 'tritongpu-pipeline{num-stages=three}' 2>&1 | %filecheck %s --check-prefix=TYPE
// RUN: not tilepass-opt %s --load %test_passes -p 'test-rename-attribute{tu=x}' 2>&1 | %filecheck %s --check-prefix=OUROPTION
// RUN: not tilepass-opt %s --load %test_passes -p 'test-rename-attribute{times=x}' 2>&1 | %filecheck %s --check-prefix=OURTYPE
// RUN: not tilepass-opt %s --load %test_passes -p 'test-rename-attribute{mode=some}' 2>&1 | %filecheck %s --check-prefix=CHOICE

// Names and options are checked before the input is looked at: this file would not parse.
// NAME:      error: unknown pass 'cze'; did you mean 'cse'? (--list-passes lists all passes)
// OURS:      error: unknown pass 'flatten-loop'; did you mean 'flatten-loops'
// FLAG:      error: unknown flag or pass '--splt-input-file'; did you mean 'split-input-file'?
// SYNTAX:    error: pipeline: expected a pass name
// SYNTAX-NEXT: {{^  cse,$}}
// SYNTAX-NEXT: {{^      \^$}}
// ANCHOR:    error: 'cse@after:canonicalize': tilepass-opt runs passes in the order in which they are written; leave out '@after:canonicalize', which is for compilations
// OPTION:    error: pass 'tritongpu-pipeline' has no option 'num-stagez'; did you mean 'num-stages'? (options: dump-intermediate-steps, num-stages)
// TYPE:      error: pass 'tritongpu-pipeline', option 'num-stages': 'three' is not an integer
// OUROPTION: error: pass 'test-rename-attribute' has no option 'tu'; did you mean 'to'? (options: to, times, mode)
// OURTYPE:   error: pass 'test-rename-attribute', option 'times': 'x' is not an integer
// CHOICE:    error: pass 'test-rename-attribute', option 'mode': 'some' is not one of all, none
not MLIR
