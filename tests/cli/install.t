`make install` to what is no folder: one clear line, before anything is set up or built.
$ touch file; make -s -C "$SOURCE" install PREFIX="$PWD/file" BUILD=none 2>&1 | grep -v '^make'
install: .../file is a file, not a folder
$ make -s -C "$SOURCE" install PREFIX="$PWD/file/below/it" BUILD=none 2>&1 | grep -v '^make'
install: .../file is a file, not a folder
$ make -s -C "$SOURCE" install PREFIX="$PWD/file/with a blank" BUILD=none 2>&1 | grep -v '^make'
install: .../file is a file, not a folder
$ ls "$SOURCE"/none
ls: ...
[2]
