// Command pack adds to a folder of tests/release/build.sh what is derived from the trees to be
// installed and from the archives in it: .rpm packages, a zip file for Windows, an OCI image, the list of
// what the binaries are made of, a Homebrew formula and a Spack recipe. The output depends on its
// input only.
package main
