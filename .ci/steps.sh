# Steps of .ci/run. A step runs once: what fails has to be looked at, and a repetition would
# hide a defect that shows only sometimes. timed_step is for tests with time limits: the
# machine is shared, and a pause of a second fails a test that nothing is wrong with. It is
# repeated once, and the end of the output names it. go test does not run again what passed,
# so the repetition is short. A fuzz target, random programs, a compiler and a linter have no
# such excuse: house_ci_test.go checks that they are never repeated.

began=$SECONDS
repeated=()

step() {
	local title=$1 start=$SECONDS
	shift
	printf '\n=== %s (at %d s)\n' "$title" $((SECONDS - began))
	if ! "$@"; then
		printf '\n=== FAILED: %s, after %d s\n' "$title" $((SECONDS - start))
		exit 1
	fi
	printf '=== %s: %d s\n' "$title" $((SECONDS - start))
}

timed_step() {
	local title=$1 start=$SECONDS
	shift
	printf '\n=== %s (at %d s)\n' "$title" $((SECONDS - began))
	if "$@"; then
		printf '=== %s: %d s\n' "$title" $((SECONDS - start))
		return
	fi
	printf '\n=== FAILED: %s, after %d s; once more, because it has time limits\n' "$title" $((SECONDS - start))
	repeated+=("$title")
	step "$title, once more" "$@"
}

report() {
	local title
	for title in "${repeated[@]}"; do
		printf '\n=== passed only when repeated: %s\n' "$title"
	done
	printf '\n=== all passed in %d s\n' $((SECONDS - began))
}
